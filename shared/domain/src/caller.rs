//! Who calls, and what the token lets them do (product specification, section 1).

use crate::counted;
use crate::event::EventCore;
use crate::identifier::{ProjectId, TenantId, UserId};

/// What a token may allow beyond acting as oneself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `feedback:on-behalf`: a back end that acts for the users of its tenant.
    OnBehalf,
    /// `feedback:report`: reads over all users of the tenant.
    Report,
    /// `feedback:admin`: administers the tenant.
    Admin,
}

impl Scope {
    /// The scope as tokens write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnBehalf => "feedback:on-behalf",
            Self::Report => "feedback:report",
            Self::Admin => "feedback:admin",
        }
    }
}

/// The verified claims of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `sub`: the user, or the back end, that calls.
    pub user: UserId,
    /// `tenant`: the only tenant whose data the call can touch.
    pub tenant: TenantId,
    /// `projects`, the most recent first.
    pub projects: Vec<ProjectId>,
    /// `scope`, split at its spaces.
    pub scopes: Vec<String>,
}

/// The token does not allow this: 403, decided before anything is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// Acting for another user without [`Scope::OnBehalf`].
    #[error("acting for another user needs the scope feedback:on-behalf")]
    AnotherUser,
    /// A tenant that is not the token's, or a project that the token does not hold.
    #[error("the token does not hold this tenant and project")]
    AnotherProject,
    /// Something that a token without a scope may not do.
    #[error("this needs the scope {}", .0.as_str())]
    Scope(Scope),
}

impl Caller {
    /// Whether the token carries a scope.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|held| held == scope.as_str())
    }

    /// Whether the token holds a project of its tenant.
    #[must_use]
    pub fn holds(&self, project: &ProjectId) -> bool {
        self.projects.contains(project)
    }

    /// Whether the token holds the tenant and the project of a path.
    pub fn enter(&self, tenant: &TenantId, project: &ProjectId) -> Result<(), Forbidden> {
        if *tenant == self.tenant && self.holds(project) {
            Ok(())
        } else {
            Err(Forbidden::AnotherProject)
        }
    }

    /// Whether the caller may say by this event what it says of a turn: one that it names in a project of the
    /// token's, or none.
    pub fn may_say(&self, event: &EventCore) -> Result<(), Forbidden> {
        match counted::turn_of(event) {
            Some(turn) => self.enter(&turn.within.tenant, &turn.within.project),
            None => Ok(()),
        }
    }

    /// Whether the caller may see what is `user`'s: its own, or with [`Scope::Report`] anybody's.
    #[must_use]
    pub fn sees(&self, user: &UserId) -> bool {
        *user == self.user || self.has(Scope::Report)
    }

    /// Whose feedback the caller sees, to tell one query from another: its own user's, or with
    /// [`Scope::Report`] everybody's, which is no user.
    #[must_use]
    pub fn view(&self) -> &str {
        if self.has(Scope::Report) {
            ""
        } else {
            self.user.as_str()
        }
    }

    /// The caller in whose view a request that names a `user_id` is answered: itself, or with
    /// [`Scope::OnBehalf`] that user, with no scope, so that the answer is what the user would get.
    pub fn on_behalf_of(self, user: Option<UserId>) -> Result<Self, Forbidden> {
        let Some(user) = user.filter(|user| *user != self.user) else {
            return Ok(self);
        };
        self.act_as(&user)?;
        Ok(Self {
            user,
            scopes: Vec::new(),
            ..self
        })
    }

    /// Whether the token carries a scope, as a condition of what comes next.
    pub fn require(&self, scope: Scope) -> Result<(), Forbidden> {
        if self.has(scope) {
            Ok(())
        } else {
            Err(Forbidden::Scope(scope))
        }
    }

    /// Whether the caller may decide over all that is kept of `user`: of itself, or with [`Scope::Admin`] of
    /// anybody.
    pub fn administer(&self, user: &UserId) -> Result<(), Forbidden> {
        if *user == self.user {
            Ok(())
        } else {
            self.require(Scope::Admin)
        }
    }

    /// Whether the caller may act as `user`: as itself, or on behalf of others with the scope.
    pub fn act_as(&self, user: &UserId) -> Result<(), Forbidden> {
        if *user == self.user || self.has(Scope::OnBehalf) {
            Ok(())
        } else {
            Err(Forbidden::AnotherUser)
        }
    }
}
