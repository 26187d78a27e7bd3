//! Insights: counts of a project's feedback by time, and by what it is about.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::identity::caller::Scope;
use hearback_domain::views::insights::{
    Breakdown, CompareQuery, ComparisonReport, Dimension, InsightsQuery, InsightsReport, Interval,
    Part, Period,
};
use hearback_lambda::params::{OfProject, Parameters};
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::insights::ProjectRef;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => get_insights, get_comparison)
}

/// Insights
///
/// Counts and rates of the project's feedback by time: all together, and with `groupBy` by value. What users gave and
/// what was inferred are counted apart, and each rate has its 95 % interval. An event is in the interval in which the
/// feedback was given. A change is counted mostly within a minute. Requires `feedback:report`.
#[utoipa::path(
    get,
    path = "/v1/projects/{projectId}/insights",
    tag = "insights",
    params(
        OfProject,
        InsightsQuery,
    ),
    responses(
        (status = 200, description = "The counts", body = InsightsReport),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn get_insights(
    State(app): State<App>,
    OfProject { project, caller }: OfProject,
    Parameters(query): Parameters<InsightsQuery>,
) -> Result<Json<InsightsReport>, Problem> {
    caller.require(Scope::Report)?;
    let now = app.clock.now();
    let period = query.period(now).map_err(Problem::invalid)?;
    let place = ProjectRef {
        tenant: &caller.tenant,
        project: &project,
    };
    let counted = counted(&app, place, &query, period).await?;
    let Counted {
        parts,
        at,
        dimensions,
    } = counted;
    let report = InsightsReport::of(&query, period, parts, at, &dimensions);
    Ok(Json(report))
}

/// Compare
///
/// Whether feedback on the answers with one value, such as a prompt version, is better than on those with another: both
/// rates, their difference, and a verdict. Each user counts once, by what they gave. The interval of the difference is
/// valid however often somebody looks. Requires `feedback:report`.
#[utoipa::path(
    get,
    path = "/v1/projects/{projectId}/insights/compare",
    tag = "insights",
    params(
        OfProject,
        CompareQuery,
    ),
    responses(
        (status = 200, description = "The comparison", body = ComparisonReport),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn get_comparison(
    State(app): State<App>,
    OfProject { project, caller }: OfProject,
    Parameters(query): Parameters<CompareQuery>,
) -> Result<Json<ComparisonReport>, Problem> {
    caller.require(Scope::Report)?;
    let insights = query.insights();
    let period = insights.period(app.clock.now()).map_err(Problem::invalid)?;
    let place = ProjectRef {
        tenant: &caller.tenant,
        project: &project,
    };
    let Counted { parts, at, .. } = counted(&app, place, &insights, period).await?;
    Ok(Json(ComparisonReport::of(&query, period, parts, at)))
}

/// The counts of a period.
struct Counted {
    parts: Vec<(Interval, Part)>,
    /// The latest time at which one of them was counted.
    at: Option<DateTime<Utc>>,
    /// In which its answers have values.
    dimensions: BTreeSet<Dimension>,
}

async fn counted(
    app: &App,
    place: ProjectRef<'_>,
    query: &InsightsQuery,
    period: Period,
) -> Result<Counted, Problem> {
    let (now, span) = (app.clock.now(), query.counted(period));
    let by = query.group_by.as_ref().map(|by| &by.0);
    let apart = by.filter(|by| !by.is_closed());
    let heads = app.store.overviews(place, span, now);
    let rows = async {
        match apart {
            Some(by) => app.store.breakdowns(place, by, span, now).await,
            None => Ok(Vec::new()),
        }
    };
    let (heads, rows) = futures::future::try_join(heads, rows).await?;
    let mut rows: BTreeMap<Interval, Breakdown> = rows.into_iter().collect();
    let at = heads.iter().map(|(_, head)| head.counted_at).max();
    let others: BTreeSet<&Dimension> = heads.iter().flat_map(|(_, head)| &head.others).collect();
    let dimensions = others.into_iter().cloned().collect();
    let parts = heads.into_iter().filter_map(|(interval, mut head)| {
        let all = head.by.remove(&Dimension::All)?;
        let by = match apart {
            // A row that the head does not list is that of an earlier count.
            Some(by) => rows.remove(&interval).filter(|_| head.others.contains(by)),
            None => by.and_then(|by| head.by.remove(by)),
        };
        let is_left_out =
            head.label_keys_left_out > 0 && matches!(apart, Some(Dimension::Label(_)));
        Some((interval, Part::new(all, by, is_left_out)))
    });
    Ok(Counted {
        parts: parts.collect(),
        at,
        dimensions,
    })
}
