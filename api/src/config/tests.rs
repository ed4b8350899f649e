//! The configuration: what wins, what is refused, and how that is said.

use super::*;

/// What is said of a file with this text.
fn said(file: &str) -> String {
    let (folder, flags) = folder_with(file);
    let said = Config::load(&flags).expect_err("it is wrong").to_string();
    said.replace(&*folder.path().to_string_lossy(), "DIR")
}

fn folder_with(file: &str) -> (tempfile::TempDir, ServeFlags) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join(FILE_NAME), file).expect("a file can be written");
    let data_dir = Some(folder.path().to_owned());
    let flags = ServeFlags { folder: FolderFlags { config: None, data_dir }, ..ServeFlags::default() };
    (folder, flags)
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let (_folder, mut flags) = folder_with("instances = 3\ndrain_seconds = 7\n");
    flags.drain_seconds = Some(9);
    let config = Config::load(&flags).expect("it is valid");
    assert_eq!((config.instances, config.drain_seconds), (3, 9));
    assert_eq!(config.idle_timeout_seconds, 1_800);
}

#[test]
fn an_unknown_name_is_refused_and_named_with_the_one_that_was_meant() {
    for (file, wanted) in [
        ("listn = 1", "there is no setting listn; did you mean listen?"),
        ("listen_addr = 1", "there is no setting listen_addr; did you mean listen?"),
        ("[http]\nburts = 1", "there is no setting http.burts; did you mean http.burst?"),
        ("burst = 1", "there is no setting burst; did you mean http.burst?"),
        ("colour = 1", "there is no setting colour"),
    ] {
        let wanted = format!("the configuration is not valid: DIR/browserspace.toml: {wanted}");
        assert_eq!(said(file), wanted, "{file}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_told_what_would_be_right() {
    for (file, wanted) in [
        ("listen = \"localhost:1\"", "listen must be an IP address and a port, as in 127.0.0.1:7878"),
        ("instances = \"three\"", "instances must be a whole number from 0 to 64, and not \"three\""),
        ("instances = 70000", "instances must be a whole number from 0 to 64, and not 70000"),
        ("log_format = \"xml\"", "log_format must be one of pretty, json, and not \"xml\""),
        ("tls_terminated = 1", "tls_terminated must be true or false, and not 1"),
        ("otlp_endpoint = \"s3cret\"", "otlp_endpoint must be a URL, as in http://127.0.0.1:4318"),
        ("[http]\nburst = true", "http.burst must be a whole number from 1 to 1000000, and not true"),
        ("http = 3", "http must be a section: [http] and its settings below it, and not 3"),
    ] {
        let wanted = format!("the configuration is not valid: DIR/browserspace.toml: {wanted}");
        assert_eq!(said(file), wanted, "{file}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_told_by_line_and_column_on_one_line() {
    let said = said("instances = 1\nlisten = = 3\n");
    assert!(said.contains("DIR/browserspace.toml, line 2, column 10: "), "{said}");
    assert!(!said.contains(['\n', '|']), "{said}");
}

#[test]
fn every_number_out_of_its_range_is_refused_by_its_own_name() {
    let names: Vec<String> =
        explain::settings().into_iter().filter(|name| explain::range(name).is_some()).collect();
    let sections = HttpConfig::RANGES.len() + crate::checkpoints::CheckpointsConfig::RANGES.len();
    assert_eq!(names.len(), explain::RANGES.len() + sections);
    for name in names {
        let most = *explain::range(&name).expect("it has one").end();
        let in_section = |(section, field)| (format!("[{section}]\n"), field);
        let (section, field) = name.split_once('.').map_or_else(|| (String::new(), &*name), in_section);
        let said = said(&format!("{section}{field} = {}\n", most + 1));
        assert!(said.contains(&name) && said.contains(&most.to_string()), "{said}");
    }
}

#[test]
fn a_value_out_of_its_range_is_refused_with_the_range() {
    let (_folder, flags) = folder_with("instances = 65\n");
    let message = Config::load(&flags).expect_err("it is too many").to_string();
    assert_eq!(message, "instances: 65 is not between 0 and 64");
}

#[test]
fn a_named_file_that_is_not_there_is_an_error() {
    let (folder, mut flags) = folder_with("");
    flags.folder.config = Some(folder.path().join("other.toml"));
    assert!(matches!(Config::load(&flags), Err(ConfigError::File { .. })));
}

#[test]
fn c03_an_open_address_needs_declared_tls() {
    for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[::ffff:127.0.0.1]:0"] {
        let (_folder, mut flags) = folder_with("");
        flags.listen = Some(open.parse().expect("an address"));
        assert!(matches!(Config::load(&flags), Err(ConfigError::OpenBind(_))), "{open}");
        flags.tls_terminated = Some(true);
        assert!(Config::load(&flags).is_ok(), "{open}");
    }
    for closed in ["127.0.0.1:0", "127.8.9.1:0", "[::1]:0"] {
        let (_folder, mut flags) = folder_with("");
        flags.listen = Some(closed.parse().expect("an address"));
        assert!(Config::load(&flags).is_ok(), "{closed}");
    }
}

#[test]
fn the_printed_configuration_holds_no_key_of_the_collector() {
    let url = "https://user:s3cret@collector.example/base?api_key=s3cret".parse().ok();
    let printed = Config { otlp_endpoint: url, ..Config::default() }.printable();
    assert!(printed.contains("collector.example"), "{printed}");
    assert!(!printed.contains("s3cret") && !printed.contains("user"), "{printed}");
}

#[test]
fn a_refused_address_of_the_collector_is_not_printed_back() {
    let said = said("otlp_endpoint = \"http://user:s3cret@[no-address\"\n");
    assert!(said.contains("otlp_endpoint must be a URL"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn the_views_lie_in_a_file_or_where_a_url_says_and_its_password_is_never_printed() {
    let of =
        |text: &str| Config::load(&folder_with(text).1).map(|config| (config.views(), config.printable()));
    let (place, _) = of("").expect("a default");
    assert!(matches!(place, projections::Place::Sqlite(path) if path.ends_with("views.sqlite")));
    let (place, printed) =
        of("views_url = \"postgres://me:s3cret@localhost/v?password=s3cret\"").expect("it is good");
    assert!(matches!(place, projections::Place::Postgres { .. }));
    assert!(printed.contains("localhost") && !printed.contains("s3cret"), "{printed}");
    for bad in ["postgres://me:s3cret@db.example/v", "https://me:s3cret@localhost/v", "s3cret"] {
        let said = said(&format!("views_url = \"{bad}\"\n"));
        assert!(said.contains("views_url") && !said.contains("s3cret"), "{said}");
    }
}

/// A page or file of `docs`.
fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    std::fs::read_to_string(path).expect("the document is there")
}

/// Settings that have no default, which the sample must show all the same.
const WITHOUT_DEFAULT: [&str; 6] = [
    "chromium",
    "otlp_endpoint",
    "views_url",
    "checkpoints.key_file",
    "checkpoints.folder",
    "checkpoints.url",
];
/// Declared once, at the top; the section's own field follows it.
const FOLLOWS_ANOTHER: &str = "http.tls_terminated";

#[test]
fn the_sample_file_is_valid_and_holds_every_setting_at_its_default() {
    let sample = document("browserspace.toml");
    let (_folder, flags) = folder_with(&sample);
    Config::load(&flags).expect("as it is, it changes nothing");
    let is_setting = |line: &str| {
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '))
    };
    let switched_on: String = sample
        .lines()
        .filter_map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)))
        .map(|line| format!("{line}\n"))
        .collect();
    let table: toml::Table = toml::from_str(&switched_on).expect("it is TOML");
    for setting in explain::settings().iter().filter(|name| *name != FOLLOWS_ANOTHER) {
        let found = match setting.split_once('.') {
            Some((section, field)) => table.get(section).and_then(|section| section.get(field)),
            None => table.get(setting),
        };
        assert!(found.is_some(), "{setting} is missing in the sample");
    }
    let (folder, _) = folder_with("");
    let path = folder.path().join("sample.toml");
    std::fs::write(&path, &switched_on).expect("a file can be written");
    let named = FolderFlags { config: Some(path), data_dir: None };
    let mut config = Config::load_for(&named).expect("every line of it is valid");
    (config.chromium, config.otlp_endpoint, config.views_url) = (None, None, None);
    (config.checkpoints.key_file, config.checkpoints.folder, config.checkpoints.url) = (None, None, None);
    assert_eq!(config, Config::default());
}

#[test]
fn the_page_of_settings_holds_each_with_its_default_and_range() {
    let page = document("configuration.md");
    let defaults = serde_json::to_value(Config::default()).expect("plain fields");
    let settings = explain::settings();
    for setting in settings.iter().filter(|name| *name != FOLLOWS_ANOTHER) {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{setting}` |")));
        let row = row.unwrap_or_else(|| panic!("{setting} has no row"));
        let default = &defaults.pointer(&format!("/{}", setting.replace('.', "/"))).expect("it has a value");
        let shown = if WITHOUT_DEFAULT.contains(&&**setting) {
            "| none |".to_owned()
        } else {
            format!("| `{default}` |")
        };
        assert!(row.contains(&shown), "{setting} is {shown}: {row}");
        if let Some(range) = explain::range(setting) {
            let shown = format!("| {} to {} |", range.start(), range.end());
            assert!(row.contains(&shown), "{setting} ranges {shown}: {row}");
        }
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, settings.len() - 1, "no row is left over");
}
