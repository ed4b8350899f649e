//! The name of a place for views: a file, or the URL of a PostgreSQL.

use std::path::PathBuf;

use url::{Host, Url};

/// The schema that views lie in where the URL names none.
const SCHEMA: &str = "browserspace";
/// The parameter of the URL that names another one. It is ours, not the driver's.
const SCHEMA_PARAMETER: &str = "schema";
/// A name of PostgreSQL has at most 63 bytes; some are left for what stands beside it for a while.
const SCHEMA_BYTES_MAX: usize = 48;

/// Where views lie.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// In this file.
    Sqlite(PathBuf),
    /// In a schema of a PostgreSQL, which is ours alone.
    Postgres {
        /// Where it is, who we are there, and which database.
        url: Url,
        /// The schema.
        schema: String,
    },
}

/// Without the password.
impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Without the password and the parameters.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres { url, schema } => {
                let host = url.host_str().unwrap_or_default();
                write!(f, "schema {schema} of the database {} at {host}", url.path().trim_start_matches('/'))
            }
        }
    }
}

/// Why a URL names no place for views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPlace {
    /// It is not of PostgreSQL.
    #[error("must begin with postgres:// or postgresql://")]
    Scheme,
    /// The schema has a strange name.
    #[error("names a schema that is not a-z, 0-9 and _, at most 48 of them, beginning with a letter")]
    Schema,
    /// Rows would cross a network in the clear.
    #[error(
        "names another machine: this program speaks no TLS to a database, so name a socket or the loopback (with a \
         tunnel behind it), or say sslmode=disable, which declares that the network between is your own"
    )]
    Network,
    /// It asks for TLS.
    #[error("asks for TLS by sslmode, which this program does not speak to a database: end it in a tunnel")]
    Tls,
}

impl Place {
    /// Reads the URL of a PostgreSQL.
    ///
    /// # Errors
    /// [`InvalidPlace`]; nothing of the URL is in its text.
    pub fn postgres(url: &Url) -> Result<Self, InvalidPlace> {
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(InvalidPlace::Scheme);
        }
        let parameter = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value);
        let schema =
            parameter(SCHEMA_PARAMETER).map_or_else(|| SCHEMA.to_owned(), std::borrow::Cow::into_owned);
        let is_name = schema.len() <= SCHEMA_BYTES_MAX
            && schema.starts_with(|first: char| first.is_ascii_lowercase())
            && schema.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && !schema.starts_with("pg_")
            && schema != "public";
        if !is_name {
            return Err(InvalidPlace::Schema);
        }
        match parameter("sslmode").or_else(|| parameter("ssl-mode")).as_deref() {
            Some("disable") => {}
            None | Some("allow" | "prefer") if is_local(url) => {}
            None | Some("allow" | "prefer") => return Err(InvalidPlace::Network),
            Some(_) => return Err(InvalidPlace::Tls),
        }
        let mut own = url.clone();
        let others: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(key, _)| key != SCHEMA_PARAMETER && key != "ssl-mode" && key != "sslmode")
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        own.query_pairs_mut().clear().extend_pairs(others).append_pair("sslmode", "disable");
        Ok(Self::Postgres { url: own, schema })
    }
}

/// Whether every host that the URL names is a socket or a loopback address.
fn is_local(url: &Url) -> bool {
    let by_parameter = url.query_pairs().filter(|(key, _)| key == "host" || key == "hostaddr");
    let named: Vec<String> = by_parameter.map(|(_, value)| value.into_owned()).collect();
    let is_local_name = |name: &str| {
        name.starts_with('/')
            || name == "localhost"
            || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let host = match url.host() {
        None => !named.is_empty(),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => {
            name.is_empty() || name.to_ascii_lowercase().starts_with("%2f") || is_local_name(name)
        }
    };
    (host || !named.is_empty()) && named.iter().all(|name| is_local_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Result<Place, InvalidPlace> {
        Place::postgres(&url.parse().expect("a URL"))
    }

    #[test]
    fn a_database_is_on_this_machine_unless_the_operator_says_that_the_network_is_its_own() {
        for url in [
            "postgres://me@localhost/views",
            "postgresql://me:secret@127.0.0.1:5433/views?sslmode=prefer",
            "postgres://[::1]/views",
            "postgres://me@%2Fvar%2Frun%2Fpostgresql/views",
            "postgres:///views?host=/var/run/postgresql&user=me",
            "postgres://db.example/views?sslmode=disable",
        ] {
            assert!(place(url).is_ok(), "{url}");
        }
        for url in ["postgres://db.example/views", "postgres://10.0.0.1/v?sslmode=allow", "postgres:///views"]
        {
            assert_eq!(place(url), Err(InvalidPlace::Network), "{url}");
        }
        assert_eq!(place("postgres://localhost/v?host=db.example"), Err(InvalidPlace::Network));
        assert_eq!(place("postgres://localhost/v?sslmode=require"), Err(InvalidPlace::Tls));
        assert_eq!(place("https://localhost/v"), Err(InvalidPlace::Scheme));
    }

    #[test]
    fn a_schema_is_a_plain_name_and_not_one_that_others_use() {
        let Ok(Place::Postgres { url, schema }) = place("postgres://localhost/v?schema=views_2&a=b") else {
            panic!("it is a place")
        };
        assert_eq!((schema.as_str(), url.query()), ("views_2", Some("a=b&sslmode=disable")));
        for name in ["public", "pg_x", "", "A", "1a", "a\"; DROP SCHEMA x", &"a".repeat(49)] {
            let url = Url::parse_with_params("postgres://localhost/v", [("schema", name)]).expect("a URL");
            assert_eq!(Place::postgres(&url), Err(InvalidPlace::Schema), "{name}");
        }
    }

    #[test]
    fn a_place_is_shown_without_its_password() {
        let shown = format!("{0} {0:?}", place("postgres://me:hunter2@localhost/views").expect("a place"));
        assert!(shown.contains("views") && !shown.contains("hunter2"), "{shown}");
    }
}
