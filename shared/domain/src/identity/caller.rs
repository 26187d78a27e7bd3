//! The caller and the permissions of its token. See docs/reference/tokens.md.

use serde::{Deserialize, Serialize};

use crate::identity::identifier::{ProjectId, TenantId, UserId, UserRef};

/// A permission in addition to access to one's own data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `feedback:on-behalf`: act for any user of the tenant.
    OnBehalf,
    /// `feedback:report`: read the data of all users of the tenant.
    Report,
    /// `feedback:admin`: administer the tenant.
    Admin,
    /// `feedback:operate`: operate the deployment, which all tenants share.
    Operate,
}

impl Scope {
    /// The name of the scope in a token.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnBehalf => "feedback:on-behalf",
            Self::Report => "feedback:report",
            Self::Admin => "feedback:admin",
            Self::Operate => "feedback:operate",
        }
    }
}

/// The verified claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// `sub`: the calling user or back end.
    pub user: UserId,
    /// `tenant`: the only tenant whose data the call can access.
    pub tenant: TenantId,
    /// `projects`, the most recent first.
    pub projects: Vec<ProjectId>,
    /// `scope`, split at spaces.
    pub scopes: Vec<String>,
}

/// The token does not allow the request: 403. Checked before any data is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// Acting for another user without [`Scope::OnBehalf`].
    #[error("acting for another user needs the scope feedback:on-behalf")]
    AnotherUser,
    /// Reading another user's feedback without [`Scope::OnBehalf`] and without [`Scope::Report`].
    #[error("the feedback of another user needs the scope feedback:on-behalf or feedback:report")]
    AnotherUsersFeedback,
    /// The tenant is not the token's, or the token does not have the project.
    #[error("the token does not have this tenant and project")]
    AnotherProject,
    /// The token does not have the required scope.
    #[error("this needs the scope {}", .0.as_str())]
    Scope(Scope),
}

impl Caller {
    /// The calling user or back end.
    #[must_use]
    pub fn user_ref(&self) -> UserRef<'_> {
        UserRef::new(&self.tenant, &self.user)
    }

    /// Whether the token has a scope.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|name| name == scope.as_str())
    }

    /// Whether the token has a project.
    #[must_use]
    pub fn holds(&self, project: &ProjectId) -> bool {
        self.projects.contains(project)
    }

    /// Requires that the token has this tenant and project.
    pub fn require_project(&self, tenant: &TenantId, project: &ProjectId) -> Result<(), Forbidden> {
        if *tenant == self.tenant && self.holds(project) {
            Ok(())
        } else {
            Err(Forbidden::AnotherProject)
        }
    }

    /// Whether the caller may read the data of `user`: its own, or with [`Scope::Report`] any user's.
    #[must_use]
    pub fn sees(&self, user: &UserId) -> bool {
        *user == self.user || self.has(Scope::Report)
    }

    /// The user whose feedback the caller sees, for the fingerprint of a query; empty with [`Scope::Report`], which
    /// allows the feedback of all users.
    #[must_use]
    pub fn view(&self) -> &str {
        if self.has(Scope::Report) {
            ""
        } else {
            self.user.as_str()
        }
    }

    /// The effective caller of a request with a `user_id`: the caller itself, or with [`Scope::OnBehalf`] that user
    /// without scopes, so that the response is the one that the user would receive.
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

    /// Requires a scope.
    pub fn require(&self, scope: Scope) -> Result<(), Forbidden> {
        if self.has(scope) {
            Ok(())
        } else {
            Err(Forbidden::Scope(scope))
        }
    }

    /// Requires that the caller may erase `user`'s data: its own, or with [`Scope::Admin`] any user's.
    pub fn require_erasure_of(&self, user: &UserId) -> Result<(), Forbidden> {
        if *user == self.user {
            Ok(())
        } else {
            self.require(Scope::Admin)
        }
    }

    /// Requires that the caller may act as `user`: as itself, or with [`Scope::OnBehalf`] as any user.
    pub fn act_as(&self, user: &UserId) -> Result<(), Forbidden> {
        if *user == self.user || self.has(Scope::OnBehalf) {
            Ok(())
        } else {
            Err(Forbidden::AnotherUser)
        }
    }
}
