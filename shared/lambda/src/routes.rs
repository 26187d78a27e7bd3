//! The routes of a function: handlers with a `#[utoipa::path]`.
//!
//! A function uses only the path and the method of the description. With the feature `description`,
//! the same list of handlers gives the description of the API; the functions in Lambda are built
//! without it.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, on};
use utoipa::Path;
#[cfg(feature = "description")]
use utoipa::openapi::{OpenApi, RefOr};
use utoipa_axum::PathItemExt;

#[cfg(feature = "description")]
use crate::problem::MEDIA_TYPE;
#[cfg(feature = "description")]
use crate::rejections;

#[doc(hidden)]
pub use utoipa_axum;

/// The routes of a function, whose handlers have the state `S`. Made by
/// [`routes!`](crate::routes!).
#[must_use]
#[derive(Debug, Clone)]
pub struct Routes<S> {
    router: Router<S>,
    #[cfg(feature = "description")]
    descriptions: Vec<fn() -> OpenApi>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes yet.
    #[doc(hidden)]
    pub fn none() -> Self {
        Self {
            router: Router::new(),
            #[cfg(feature = "description")]
            descriptions: Vec::new(),
        }
    }

    /// Adds the description of these routes.
    #[cfg(feature = "description")]
    #[doc(hidden)]
    pub fn described(mut self, description: fn() -> OpenApi) -> Self {
        self.descriptions.push(description);
        self
    }

    /// Adds a handler with the path and the methods of its description.
    #[doc(hidden)]
    pub fn with<P, H, T>(mut self, handler: &H) -> Self
    where
        P: Path,
        H: Handler<T, S>,
        T: 'static,
    {
        let methods = P::methods()
            .iter()
            .map(|method| on(method.to_method_filter(), handler.clone()))
            .fold(MethodRouter::new(), MethodRouter::merge);
        self.router = self.router.route(&P::path(), methods);
        self
    }

    /// Adds the routes of `other`.
    pub fn and(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        #[cfg(feature = "description")]
        self.descriptions.extend(other.descriptions);
        self
    }

    /// The router with the state of its handlers.
    pub fn router(self, app: S) -> Router {
        self.router.with_state(app)
    }

    /// The description of the API.
    #[cfg(feature = "description")]
    #[must_use]
    pub fn description(&self) -> OpenApi {
        let mut merged = OpenApi::default();
        for description in self.descriptions() {
            merged.merge(description);
        }
        merged.components =
            Some(rejections::describe(merged.components.take().unwrap_or_default().into()).build());
        merged
    }

    /// The description of each group of routes. The merged description keeps only the first of two
    /// schemas with one name.
    #[cfg(feature = "description")]
    pub fn descriptions(&self) -> impl Iterator<Item = OpenApi> {
        self.descriptions.iter().map(|description| {
            let mut description = description();
            describe_problems(&mut description);
            description
        })
    }
}

/// Sets the media type of all errors to that of problem documents.
#[cfg(feature = "description")]
fn describe_problems(description: &mut OpenApi) {
    let items = description.paths.paths.values_mut();
    let operations = items.flat_map(|item| {
        let methods = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        methods.into_iter().flatten()
    });
    for (status, response) in operations.flat_map(|operation| &mut operation.responses.responses) {
        if let RefOr::T(response) = response
            && status.starts_with(['4', '5'])
            && let Some(content) = response.content.swap_remove("application/json")
        {
            response.content.insert(MEDIA_TYPE.to_owned(), content);
        }
    }
}

/// The routes of these handlers, after the type of their state. Each must have a `#[utoipa::path]`
/// in the same module.
#[macro_export]
macro_rules! routes {
    ($state:ty => $($handler:ident),+ $(,)?) => {
        $crate::routes::utoipa_axum::paste! {
            $crate::describe_routes!($state => $($handler),+)
                $(.with::<[<__path_ $handler>], _, _>(&$handler))+
        }
    };
}

#[cfg(feature = "description")]
#[doc(hidden)]
#[macro_export]
macro_rules! describe_routes {
    ($state:ty => $($handler:ident),+) => {
        $crate::routes::Routes::<$state>::none().described(|| {
            use $crate::routes::utoipa_axum;
            utoipa_axum::router::OpenApiRouter::<$state>::default()
                $(.routes(utoipa_axum::routes!($handler)))+
                .into_openapi()
        })
    };
}

#[cfg(not(feature = "description"))]
#[doc(hidden)]
#[macro_export]
macro_rules! describe_routes {
    ($state:ty => $($handler:ident),+) => {
        $crate::routes::Routes::<$state>::none()
    };
}
