//! Yesterday's shapes → today's, at read. History is never rewritten.
//!
//! To change the shape of an event: raise its number in [`SCHEMAS`], add one step to [`STEPS`] that turns the old
//! payload into the new one, and keep the old golden file. A new optional field (`#[serde(default)]`) needs neither.

use rmpv::Value;

use crate::{codec::CodecError, stream::StreamKind};

/// The schema of every kind that is not listed in [`SCHEMAS`].
pub(crate) const FIRST_SCHEMA: u16 = 1;

/// Kinds whose shape has changed, and today's number.
const SCHEMAS: &[(StreamKind, &str, u16)] = &[];

/// What turns a payload of schema `from` into one of `from + 1`.
const STEPS: &[Step] = &[];

/// One upcast. Pure: the old payload in, the new one out, or what was missing.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) stream: StreamKind,
    pub(crate) kind: &'static str,
    pub(crate) from: u16,
    pub(crate) upcast: fn(Value) -> Result<Value, &'static str>,
}

/// Which shapes are today's and how older ones become them.
#[derive(Clone, Copy)]
pub(crate) struct Upcasts {
    pub(crate) schemas: &'static [(StreamKind, &'static str, u16)],
    pub(crate) steps: &'static [Step],
}

/// Today's schema of this kind.
pub(crate) fn schema_of(stream: StreamKind, kind: &str) -> u16 {
    Upcasts::today().schema_of(stream, kind)
}

impl Upcasts {
    pub(crate) const fn today() -> Self {
        Self { schemas: SCHEMAS, steps: STEPS }
    }

    pub(crate) fn schema_of(self, stream: StreamKind, kind: &str) -> u16 {
        self.schemas
            .iter()
            .find(|(of, name, _)| *of == stream && *name == kind)
            .map_or(FIRST_SCHEMA, |(_, _, schema)| *schema)
    }

    /// Brings a payload from `schema` to today's, one step at a time.
    pub(crate) fn apply(
        self,
        stream: StreamKind,
        kind: &str,
        schema: u16,
        payload: &[u8],
    ) -> Result<Vec<u8>, CodecError> {
        let error = |schema, what: &'static str| CodecError::Upcast {
            kind: kind.to_owned(),
            schema,
            what: what.into(),
        };
        let mut value = rmpv::decode::read_value(&mut &*payload)
            .map_err(|_| error(schema, "the payload is not MessagePack"))?;
        for from in schema..self.schema_of(stream, kind) {
            let step = self
                .steps
                .iter()
                .find(|step| step.stream == stream && step.kind == kind && step.from == from)
                .ok_or_else(|| error(from, "no upcast from this schema"))?;
            value = (step.upcast)(value).map_err(|what| error(from, what))?;
        }
        let mut bytes = Vec::with_capacity(payload.len());
        rmpv::encode::write_value(&mut bytes, &value)
            .map_err(|_| error(schema, "the result could not be written"))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::{decode_event, decode_event_with, encode_event},
        event::{Event, ServerEvent},
        id::BootId,
    };

    const RENAMED: Upcasts = Upcasts {
        schemas: &[(StreamKind::Server, "stopped", 3)],
        steps: &[
            Step { stream: StreamKind::Server, kind: "stopped", from: 1, upcast: |old| Ok(old) },
            Step {
                stream: StreamKind::Server,
                kind: "stopped",
                from: 2,
                upcast: |old| {
                    let Value::Map(fields) = old else { return Err("not a map") };
                    Ok(Value::Map(fields.into_iter().map(|(_, id)| ("boot".into(), id)).collect()))
                },
            },
        ],
    };

    fn old_payload() -> Vec<u8> {
        let boot = Value::Binary(vec![7; 16]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &Value::Map(vec![("start".into(), boot)]))
            .expect("it is written");
        bytes
    }

    #[test]
    fn an_old_shape_is_read_as_todays_through_every_step() {
        let event =
            decode_event_with(RENAMED, StreamKind::Server, "stopped", 1, &old_payload()).expect("it upcasts");
        let boot = BootId::from_uuid(uuid::Uuid::from_bytes([7; 16]));
        assert_eq!(event, Event::Server(ServerEvent::Stopped { boot }));
    }

    #[test]
    fn a_missing_step_is_an_error_and_not_a_guess() {
        let gap = Upcasts { steps: &RENAMED.steps[1..], ..RENAMED };
        let error =
            decode_event_with(gap, StreamKind::Server, "stopped", 1, &old_payload()).expect_err("no step");
        assert!(matches!(error, CodecError::Upcast { schema: 1, .. }), "{error}");
    }

    #[test]
    fn a_newer_kind_or_schema_is_kept_byte_for_byte() {
        for (kind, schema) in [("levitated", 1), ("stopped", 9)] {
            let event = decode_event(StreamKind::Server, kind, schema, b"\x81\xa1x\x01").expect("it is kept");
            let Event::Unknown(unknown) = &event else { panic!("{event:?} is known") };
            assert_eq!((unknown.kind.as_str(), unknown.schema), (kind, schema));
            let again = encode_event(&event).expect("it is written");
            assert_eq!((&*again.kind, again.schema, &*again.payload), (kind, schema, &b"\x81\xa1x\x01"[..]));
        }
    }
}
