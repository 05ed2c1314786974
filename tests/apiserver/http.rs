//! Sends plain HTTP requests to servers on this machine.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gets `path` from the server at `address`. Answers the status code and the body.
pub fn get(address: &str, path: &str) -> Result<(u16, String), String> {
    let explain = |error: std::io::Error| format!("http://{address}{path}: {error}");
    let mut stream = TcpStream::connect(address).map_err(explain)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(explain)?;
    // HTTP/1.0 leaves the length of the body to the end of the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").map_err(explain)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(explain)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or_else(|| format!("http://{address}{path}: not HTTP: {head}"))?;
    Ok((code, body.to_string()))
}

/// The address on this machine in the first line of a log with `words`.
pub fn address_after(log: &str, words: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains(words))?;
    let (_, rest) = line.split_once("127.0.0.1:")?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(format!("127.0.0.1:{port}"))
}
