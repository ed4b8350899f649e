//! The demo's own shop: the files of `ops/demo` on a free loopback port, so that a real page needs no network.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

const REQUEST_BYTES_MAX: u64 = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// Path, media type, bytes.
const FILES: [(&str, &str, &str); 5] = [
    ("/", "text/html; charset=utf-8", include_str!("../../../demo/index.html")),
    ("/thanks.html", "text/html; charset=utf-8", include_str!("../../../demo/thanks.html")),
    ("/shop.css", "text/css; charset=utf-8", include_str!("../../../demo/shop.css")),
    ("/shop.js", "text/javascript; charset=utf-8", include_str!("../../../demo/shop.js")),
    ("/thanks.js", "text/javascript; charset=utf-8", include_str!("../../../demo/thanks.js")),
];

/// Opens the shop; it stays open until this program ends.
pub(crate) fn open() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the shop found no free port")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser opens connections ahead of need and leaves them silent: each one waits on a thread of its own.
            thread::spawn(move || drop(serve(&stream)));
        }
    });
    Ok(address)
}

/// One request, one answer: HTTP/1.1 (RFC 9112) as far as a shop of five files needs it.
fn serve(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(REQUEST_BYTES_MAX)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
    let file = FILES.iter().find(|(name, _, _)| *name == path);
    let (status, media_type, body) = file
        .map_or(("404 Not Found", "text/plain", "not here"), |(_, media_type, body)| {
            ("200 OK", media_type, body)
        });
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}
