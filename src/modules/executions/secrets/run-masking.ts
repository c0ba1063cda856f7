/** Masks the secrets of a run in its output, result and messages (contract 00, 0.15). */
import { createSecretValues, type SecretFilter, type SecretValues } from '../../../lib/secrets/index.ts'
import type { OutputType } from '../../../runners/index.ts'
import type { OutputIntake } from '../output/output.ts'

export interface RunSecrets {
  /** Grows as secrets become known. */
  readonly known: unknown[]
  /** Undefined without secrets. */
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

/** Each host and output type is a text of its own. A secret can come in pieces, so its beginning waits for the rest. */
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
        // More secrets are known now; the text that waits was written before.
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

/** A truncated text in a result has a key beside it that says so. */
export function isCutText(key: string, owner: Readonly<Record<string, unknown>>): boolean {
  return owner[`${key}_truncated`] === true
}
