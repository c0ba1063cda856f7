import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { ChildOutput } from './child-output.ts'

const collect = (maxBytes = 1000) => {
  const stream = new PassThrough()
  const emitted: string[] = []
  const output = new ChildOutput(stream, { maxBytes, emit: (text) => void emitted.push(text) })
  return { stream, emitted, output }
}

describe('what is kept', () => {
  it('is the whole text when it fits', async () => {
    const { stream, emitted, output } = collect(6)
    stream.write('abc')
    stream.end('äx')
    await output.drain()
    expect([output.text, output.isTruncated, emitted.join('')]).toEqual(['abcäx', false, 'abcäx'])
  })

  it('is cut between characters, while everything is emitted', async () => {
    const { stream, emitted, output } = collect(4)
    stream.write('abc')
    stream.write('äx')
    stream.end('more')
    await output.drain()
    expect([output.text, output.isTruncated, emitted.join('')]).toEqual(['abc', true, 'abcäxmore'])
  })

  it('is right when it comes in many thousand pieces', async () => {
    const { stream, output } = collect(20_000)
    for (let index = 0; index < 5000; index++) {
      stream.write(`${index % 10}`)
      if (index % 100 === 0) await setImmediate()
    }
    stream.end()
    await output.drain()
    expect(output.text).toBe('0123456789'.repeat(500))
  })
})

it('puts a character together that comes in two pieces', async () => {
  const { stream, emitted, output } = collect()
  stream.write(Buffer.from([0x61, 0xf0, 0x9f]))
  await waitFor('the first piece', () => emitted.length === 1)
  stream.end(Buffer.from([0xa6, 0x8a, 0xc3]))
  await output.drain()
  expect(emitted).toEqual(['a', '🦊', '\ufffd'])
})

it('pauses its source until the promise of emit resolves', async () => {
  const stream = new PassThrough()
  let release: () => void = () => undefined
  const emitted: string[] = []
  const output = new ChildOutput(stream, {
    maxBytes: 1000,
    emit: (text) => {
      emitted.push(text)
      return new Promise((resolve) => {
        release = resolve
      })
    },
  })
  stream.write('one')
  await waitFor('the first piece', () => emitted.length === 1)
  stream.write('two')
  await setImmediate()
  await setImmediate()
  expect([stream.isPaused(), emitted]).toEqual([true, ['one']])
  release()
  await waitFor('the second piece', () => emitted.length === 2)
  stream.end()
  const drained = output.drain()
  release()
  await drained
  expect(output.text).toBe('onetwo')
})

it('gives everything away before it lets go of a pipe that stays open', async () => {
  const { stream, emitted, output } = collect(10)
  for (let index = 0; index < 10; index++) stream.write(Buffer.alloc(10_000, 'x'))
  await output.drain()
  expect(emitted.join('')).toHaveLength(100_000)
  expect([output.isEnded, stream.destroyed, stream.isPaused()]).toEqual([false, false, false])
})

it('lets go of a pipe that is written to for ever', async () => {
  const { stream, emitted, output } = collect(10)
  let isDrained = false
  const write = (): void => {
    if (isDrained) return
    stream.write(Buffer.alloc(16_384, 'x'))
    globalThis.setImmediate(write)
  }
  write()
  await output.drain()
  const pieces = emitted.length
  await setImmediate()
  isDrained = true
  expect([output.text, stream.destroyed, emitted.length]).toEqual(['xxxxxxxxxx', false, pieces])
})

it('empties the pipe when emit fails, then tells of the failure', async () => {
  const stream = new PassThrough()
  let calls = 0
  const output = new ChildOutput(stream, {
    maxBytes: 1000,
    emit: () => {
      calls += 1
      return Promise.reject(new Error('disk is full'))
    },
  })
  stream.write('one')
  await waitFor('the first piece', () => calls === 1)
  stream.end('two')
  await expect(output.drain()).rejects.toThrow('disk is full')
  expect([calls, output.text]).toEqual([1, 'onetwo'])
})
