import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import { createLog } from '../../../lib/log/log.ts'
import { writeStartNote } from '../../../runners/index.ts'
import { createStartNotes, type StartNotes } from './start-notes.ts'

const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(24)) as [string, string, string] // three of three
let folder: TemporaryFolder
beforeEach(() => {
  folder = makeFolder()
})
afterEach(() => folder.remove())

const open = (bootId = 'boot'): StartNotes =>
  createStartNotes(folder.path, bootId, createLog({ level: 'ERROR', format: 'text', stream: new TextSink() }))

test('the next server knows what had begun, and only that', () => {
  const notes = open()
  notes.start()
  writeStartNote(notes.take(a))
  notes.take(b)
  writeStartNote(notes.take(c))
  const next = open()
  expect([a, b, c].map((id) => next.hadBegun(id))).toEqual([true, false, true])
})

test('places are used again, and the file stays small', () => {
  const notes = open()
  notes.start()
  const first = notes.take(a)
  writeStartNote(first)
  if (first !== undefined) notes.release(first)
  const second = notes.take(b)
  writeStartNote(second)
  expect(second?.position).toBe(first?.position)
  expect([a, b].map((id) => open().hadBegun(id))).toEqual([false, true])
})

test('without notes of this boot, everything counts as begun', () => {
  expect(open().hadBegun(a)).toBe(true)
  const notes = open()
  notes.start()
  writeStartNote(notes.take(a))
  expect(open('another boot').hadBegun(b)).toBe(true)
})

test('a server that starts discards the notes of the earlier one', () => {
  const notes = open()
  notes.start()
  writeStartNote(notes.take(a))
  const next = open()
  next.start()
  expect([existsSync(join(folder.path, 'begun-runs')), open().hadBegun(a)]).toEqual([true, false])
})
