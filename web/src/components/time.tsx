/** Points in time and durations. The server writes UTC with microseconds; people read their own time zone. */
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { serverNow } from '../api/server-clock.ts'
import { createStore, useStore, type Store } from '../store.ts'

const dateAndTime = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const dayAndTime = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

/** `at` is a wire timestamp. Its title is exact, in UTC. @param props.isShort without what is the same today */
export function Time({ at, isShort = false }: { at: string; isShort?: boolean }): JSX.Element {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return <span>{at}</span>
  return (
    <time dateTime={at} title={at}>
      {isShort ? shortFormat(date).format(date) : dateAndTime.format(date)}
    </time>
  )
}

function shortFormat(date: Date): Intl.DateTimeFormat {
  const now = new Date()
  if (date.toDateString() === now.toDateString()) return timeOfDay
  return date.getFullYear() === now.getFullYear() ? dayAndTime : dateAndTime
}

/** `30 ms`, `0.3 s`, `12 s`, `3 min 5 s`, `2 h 4 min`, `3 d 2 h` */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.1) return `${Math.round(Math.max(0, seconds) * 1000)} ms`
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.floor(seconds)} s`
  const whole = Math.floor(seconds)
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`
}

interface Clock {
  now: Store<number>
  users: number
  timer: ReturnType<typeof setInterval> | undefined
}

/** One for the whole page, however many rows show what takes how long. */
const clocks = new Map<number, Clock>()

/** Milliseconds since the epoch by the clock of the server, as often as `everyMs`. */
export function useNow(everyMs = 1000): number {
  const [clock] = useState(() => {
    const known = clocks.get(everyMs) ?? { now: createStore(serverNow()), users: 0, timer: undefined }
    clocks.set(everyMs, known)
    return known
  })
  useEffect(() => {
    const tick = (): void => clock.now.set(serverNow())
    clock.users += 1
    clock.timer ??= setInterval(tick, everyMs)
    tick()
    return () => {
      clock.users -= 1
      if (clock.users > 0) return
      clearInterval(clock.timer)
      clock.timer = undefined
    }
  }, [clock, everyMs])
  return useStore(clock.now)
}

/** How long something took, or takes so far. */
export function Elapsed({ from, seconds }: { from: string; seconds: number | undefined }): JSX.Element {
  return seconds === undefined ? <Running from={from} /> : <span>{formatSeconds(seconds)}</span>
}

function Running({ from }: { from: string }): JSX.Element {
  const now = useNow()
  return <span>{formatSeconds((now - new Date(from).getTime()) / 1000)}</span>
}
