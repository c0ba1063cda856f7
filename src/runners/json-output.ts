/** Decodes output that is JSON (contract 03, 3.9), for content that reads results that way. */
import { isObject } from '../lib/schema/index.ts'
import type { Runner } from './runner.ts'
import { readJson } from '../lib/json/index.ts'

/** UTF-16 units; longer texts stay text, because parsing them would block the event loop. */
const MAX_LENGTH = 1024 * 1024

/**
 * The runner with `stdout` and `stderr` of its results, or of each host in them, decoded where the whole text is JSON.
 * The emitted output stays unchanged.
 */
export function decodingJson(runner: Runner): Runner {
  return {
    ...runner,
    async run(context) {
      const outcome = await runner.run(context)
      return { ...outcome, result: decodedResult(outcome.result) }
    },
  }
}

function decodedResult(result: Record<string, unknown>): Record<string, unknown> {
  if (typeof result['stdout'] === 'string') return decodedOutput(result)
  // Results of several hosts have one entry per host.
  return Object.fromEntries(
    Object.entries(result).map(([host, entry]) => [host, isObject(entry) ? decodedOutput(entry) : entry]),
  )
}

function decodedOutput(output: Record<string, unknown>): Record<string, unknown> {
  const decoded = { ...output }
  for (const name of ['stdout', 'stderr']) {
    if (typeof output[name] === 'string') decoded[name] = decodedText(output[name])
  }
  return decoded
}

function decodedText(text: string): unknown {
  if (text.length > MAX_LENGTH || !/^\s*["[{\dtfn-]/.test(text)) return text
  try {
    return readJson(text)
  } catch {
    return text
  }
}
