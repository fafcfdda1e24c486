//! From the greeting to the first command.

use secrecy::ExposeSecret;

use crate::answer;
use crate::auth::{self, Plugin};
use crate::error::Error;
use crate::greeting::{Capabilities, Greeting};
use crate::packet::Packets;
use crate::parse::{Fields, put_bytes};
use crate::settings::Settings;

/// utf8mb4_general_ci, which all servers know.
const COLLATION: u8 = 45;
/// Nothing that is said before the login is longer.
pub(crate) const PACKET: usize = 1 << 20;

/// Logs in; gives what the server said of itself.
pub(crate) fn login(packets: &mut Packets, settings: &Settings) -> Result<Greeting, Error> {
    let first = packets.read()?;
    if let [0xff, ..] = packets.get(first.clone()) {
        return Err(answer::refusal(packets.get(first)));
    }
    let greeting = Greeting::parse(packets.get(first))?;
    let mut wanted = Capabilities::LONG_PASSWORD
        .with(Capabilities::LONG_FLAG)
        .with(Capabilities::PROTOCOL_41)
        .with(Capabilities::TRANSACTIONS)
        .with(Capabilities::SECURE_CONNECTION)
        .with(Capabilities::MULTI_RESULTS)
        .with(Capabilities::PLUGIN_AUTH)
        .with(Capabilities::CONNECT_ATTRS)
        .with(Capabilities::LENGTH_ENCODED_AUTH)
        .with(Capabilities::DEPRECATE_EOF)
        .with(Capabilities::LOCAL_FILES);
    if settings.database.is_some() {
        wanted = wanted.with(Capabilities::CONNECT_WITH_DB);
    }
    // LONG_PASSWORD is MariaDB's sign of itself: the server does not offer it, and takes it.
    let mut capabilities = wanted.and(greeting.capabilities.with(Capabilities::LONG_PASSWORD));
    if let Some(tls) = &settings.tls
        && !packets.stream.secure
    {
        if greeting.capabilities.has(Capabilities::SSL) {
            capabilities = capabilities.with(Capabilities::SSL);
            packets.write(&head(capabilities))?;
            if !packets.is_empty() {
                return Err(Error::Malformed("the server speaks before TLS begins"));
            }
            packets.stream.encrypt(tls)?;
        } else if tls.required {
            return Err(Error::NoTls);
        }
    }
    // A server names the plugin that it would like; the user's own comes by a switch.
    let plugin = Plugin::of(&greeting.plugin).unwrap_or(Plugin::Native);
    let password = settings.password.expose_secret().as_bytes();
    // What is longer than 20 bytes is asked for by a switch.
    let (plugin, answer) = match plugin {
        Plugin::Native | Plugin::CachingSha2 => {
            (plugin, plugin.begin(password, &greeting.scramble, false)?)
        }
        _ => (
            Plugin::Native,
            Plugin::Native.begin(password, &greeting.scramble, false)?,
        ),
    };
    packets.write(&response(capabilities, settings, plugin, &answer))?;
    authenticate(packets, plugin, password, greeting.scramble.clone())?;
    Ok(greeting)
}

/// What the request for TLS and the response begin with.
fn head(capabilities: Capabilities) -> Vec<u8> {
    let mut out = capabilities.0.to_le_bytes().to_vec();
    out.extend_from_slice(&(1u32 << 30).to_le_bytes());
    out.push(COLLATION);
    out.extend_from_slice(&[0; 23]);
    out
}

fn response(
    capabilities: Capabilities,
    settings: &Settings,
    plugin: Plugin,
    answer: &[u8],
) -> Vec<u8> {
    let mut out = head(capabilities);
    // A zero byte would end the name: the rest would be read as something else.
    out.extend(settings.user.bytes().take_while(|b| *b != 0));
    out.push(0);
    // One byte of length serves both forms: no answer is longer than 250 bytes.
    put_bytes(&mut out, answer);
    if capabilities.has(Capabilities::CONNECT_WITH_DB) {
        let database = settings.database.as_deref().unwrap_or_default();
        out.extend(database.bytes().take_while(|b| *b != 0));
        out.push(0);
    }
    if capabilities.has(Capabilities::PLUGIN_AUTH) {
        out.extend_from_slice(plugin.name().as_bytes());
        out.push(0);
    }
    if capabilities.has(Capabilities::CONNECT_ATTRS) {
        let mut attributes = Vec::new();
        put_bytes(&mut attributes, b"program_name");
        put_bytes(&mut attributes, settings.program.as_bytes());
        put_bytes(&mut out, &attributes);
    }
    out
}

/// Answers until the server is satisfied. Each server says three things at most; more is a game.
fn authenticate(
    packets: &mut Packets,
    mut plugin: Plugin,
    password: &[u8],
    mut scramble: Vec<u8>,
) -> Result<(), Error> {
    let mut key_asked = false;
    for _ in 0..8 {
        let packet = packets.read()?;
        let mut fields = Fields(packets.get(packet.clone()));
        match fields.u8()? {
            0x00 => return Ok(()),
            0xff => return Err(answer::refusal(packets.get(packet))),
            0xfe if fields.0.is_empty() => {
                return Err(Error::Plugin("mysql_old_password".to_owned()));
            }
            0xfe => {
                plugin = Plugin::of(&String::from_utf8_lossy(fields.text()?))?;
                scramble = fields.0.strip_suffix(&[0]).unwrap_or(fields.0).to_vec();
                key_asked = plugin == Plugin::Sha256;
                // A scramble of Ed25519 may itself end with a zero byte.
                if fields.0.len() == 32 {
                    scramble = fields.0.to_vec();
                }
                let secure = packets.stream.secure;
                packets.write(&plugin.begin(password, &scramble, secure)?)?;
            }
            0x01 => match (plugin, fields.0) {
                // The password is known by heart; OK follows.
                (Plugin::CachingSha2, [3]) => {}
                (Plugin::CachingSha2, [4]) if packets.stream.secure => {
                    packets.write(&auth::plain(password, true)?)?;
                }
                (Plugin::CachingSha2, [4]) => {
                    key_asked = true;
                    packets.write(&[2])?;
                }
                (Plugin::CachingSha2 | Plugin::Sha256, pem) if key_asked => {
                    key_asked = false;
                    let sealed = auth::sealed(password, auth::scramble_of(&scramble)?, pem)?;
                    packets.write(&sealed)?;
                }
                (Plugin::Parsec, salt) => {
                    let answer = auth::parsec(password, auth::scramble_of(&scramble)?, salt)?;
                    packets.write(&answer)?;
                }
                _ => return Err(Error::Malformed("the login goes on in another way")),
            },
            // Parsec's salt comes without a head.
            b'P' if plugin == Plugin::Parsec => {
                let salt = packets.get(packet);
                let answer = auth::parsec(password, auth::scramble_of(&scramble)?, salt)?;
                packets.write(&answer)?;
            }
            _ => return Err(Error::Malformed("the login goes on in another way")),
        }
    }
    Err(Error::Malformed("the login does not end"))
}
