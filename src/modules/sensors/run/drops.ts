/**
 * What a sensor sends that is wrong. The first ones are explained, those of a flood are counted; a sensor that sends many
 * is held up, because each costs the server work.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { CutFilter, SecretValues } from '../../../lib/secrets/index.ts'
import { shown } from '../../../lib/text/index.ts'
import { MAX_SENSOR_LINE_BYTES } from '../../../runners/index.ts'

/** A promise while the sensor is held up. */
type Hold = Promise<void> | undefined

export interface Drops {
  /** Counts a wrong dispatch. @param problem may contain secrets */
  readonly add: (problem: string) => Hold
  /** Counts a line that is no object in JSON; undefined: it was too long. */
  readonly addLine: (line: string | undefined) => Hold
  /** From now on nothing is held up: what still comes is little. */
  release(): void
  /** Says what is not said yet. */
  end(): void
}

/** Drops that are explained, until a flood is over. */
export const MAX_EXPLAINED = 20
/** Time after which a flood is over when there was none to count, else its count is said and one more is explained. */
const COUNT_EVERY_MS = 10_000
/** After so many a sensor is held up for so long: it cannot send more than 5,000 a second. */
export const HOLD_EVERY = 500
const HOLD_MS = 100
/** UTF-16 units of a line that are looked at. */
const MAX_LINE_LENGTH = 1_000

export function createDrops(deps: {
  /** Undefined: there are none. */
  readonly secrets: () => SecretValues | undefined
  readonly say: (text: string) => void
  readonly dropped: () => void
  /** @param text what has been said of one that was dropped */
  readonly explained: (text: string) => void
}): Drops {
  const { secrets, say } = deps
  const released = new AbortController()
  let explained = 0
  let counted = 0
  let timer: NodeJS.Timeout | undefined
  let sinceHold = 0
  let hold: Hold
  /** Masks lines as one text, because a secret can be torn over lines. */
  let filter: CutFilter | undefined
  /** A masked line that is not known to its end. */
  let line = ''

  function explain(problem: string): void {
    const text = `A dispatch was dropped: ${secrets()?.maskMessage(problem) ?? problem}.`
    say(text)
    deps.explained(text)
  }

  function explainLines(masked: string): void {
    const known = (line + masked).split('\n')
    line = known.pop() ?? ''
    for (const each of known) if (each.trim() !== '') explain(`a line is no JSON object: ${shown(each)}`)
  }

  /** Nothing follows the lines so far. */
  function endLines(): void {
    if (filter !== undefined || line !== '') explainLines(`${filter?.cut() ?? ''}\n`)
    filter = undefined
  }

  function look(): void {
    timer = undefined
    // A line whose end could begin a secret waits for the next, which may never come.
    endLines()
    if (counted === 0) {
      explained = 0
      return
    }
    sayCount()
    explained = MAX_EXPLAINED - 1
    timer = setTimeout(look, COUNT_EVERY_MS).unref()
  }

  function sayCount(): void {
    if (counted > 0) say(`${counted} more dispatches were dropped.`)
    counted = 0
  }

  /** @param explainIt called while it is not one of a flood */
  function count(explainIt: () => void): Hold {
    deps.dropped()
    timer ??= setTimeout(look, COUNT_EVERY_MS).unref()
    if (explained < MAX_EXPLAINED) {
      explained += 1
      explainIt()
    } else {
      counted += 1
      endLines()
    }
    sinceHold += 1
    if (sinceHold >= HOLD_EVERY && !released.signal.aborted) {
      sinceHold = 0
      hold ??= delay(HOLD_MS, undefined, { signal: released.signal, ref: false })
        .catch(() => undefined)
        .then(() => {
          hold = undefined
        })
    }
    return hold
  }

  const add = (problem: string): Hold => count(() => explain(problem))

  return {
    add,
    addLine(given) {
      if (given === undefined) return add(`a line has more than ${MAX_SENSOR_LINE_BYTES} bytes`)
      return count(() => {
        filter ??= secrets()?.stream()
        const text = given.slice(0, MAX_LINE_LENGTH)
        explainLines(filter?.filter(text) ?? text)
        if (text.length < given.length) explainLines(filter?.cut() ?? '')
        explainLines(filter?.filter('\n') ?? '\n')
      })
    },
    release: () => released.abort(),
    end() {
      clearTimeout(timer)
      endLines()
      sayCount()
    },
  }
}
