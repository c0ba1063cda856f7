/** Keeps the secrets of a run out of whatever it says: output, result, messages (contract 00, 0.15). */
import { createSecretValues, type SecretFilter, type SecretValues } from '../../../lib/secrets/index.ts'
import type { OutputType } from '../../../runners/index.ts'
import type { OutputIntake } from '../output/output.ts'

export interface RunSecrets {
  /** Added to as they become known. */
  readonly known: unknown[]
  /** Undefined as long as there are none. */
  readonly values: SecretValues | undefined
}

export function createRunSecrets(): RunSecrets {
  const known: unknown[] = []
  let made: { values: SecretValues | undefined; count: number } = { values: undefined, count: 0 }
  return {
    known,
    get values() {
      if (made.count !== known.length) made = { values: createSecretValues(known), count: known.length }
      return made.values
    },
  }
}

interface Stream {
  type: OutputType
  host: string | null
  values: SecretValues
  filter: SecretFilter
}

/** Each host and type is a text of its own; a secret may come in pieces, so its beginning waits for the rest. */
export function maskOutput(intake: OutputIntake, secrets: RunSecrets): OutputIntake {
  const streams = new Map<string, Stream>()

  function end({ type, host, filter }: Stream): Promise<void> | undefined {
    return intake.emit(type, filter.end(), host)
  }

  return {
    emit(type, text, host = null) {
      const { values } = secrets
      if (values === undefined) return intake.emit(type, text, host)
      const key = `${type} ${host ?? ''}`
      let stream = streams.get(key)
      if (stream?.values !== values) {
        // More has become secret meanwhile; what was held back was written before.
        if (stream !== undefined) void end(stream)
        stream = { type, host, values, filter: values.stream() }
        streams.set(key, stream)
      }
      return intake.emit(type, stream.filter.filter(text), host)
    },
    finish() {
      for (const stream of streams.values()) void end(stream)
      streams.clear()
      return intake.finish()
    },
    close: () => intake.close(),
  }
}

/** Texts of a result whose end is missing say so in a key beside them. */
export function isCutText(key: string, owner: Readonly<Record<string, unknown>>): boolean {
  return owner[`${key}_truncated`] === true
}
