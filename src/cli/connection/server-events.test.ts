import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readEvents, type ServerEvent } from './server-events.ts'

async function read(chunks: Iterable<string | Buffer>): Promise<ServerEvent[]> {
  const events: ServerEvent[] = []
  for await (const event of readEvents(Readable.from(chunks, { objectMode: false }))) events.push(event)
  return events
}

describe('events', () => {
  it('are the same however the bytes are cut', async () => {
    const text =
      'id: 1\r\nevent: a\rdata: {"x": "ü€😀"}\n\n\n\ndata:\n\ndata: one\ndata:two\r\n\r\n: comment\n\nevent: b\n\n'
    const bytes = Buffer.from(text)
    const whole = await read([bytes])
    expect(whole).toEqual([
      { name: 'a', data: '{"x": "ü€😀"}', id: '1' },
      { name: 'message', data: '', id: '1' },
      { name: 'message', data: 'one\ntwo', id: '1' },
    ])
    for (const size of [1, 2, 3, 7]) {
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      )
      expect(await read(parts)).toEqual(whole)
    }
  })

  it('bytes that are no UTF-8 are replaced, not fatal', async () => {
    const bytes = Buffer.concat([Buffer.from('data: a'), Buffer.from([0xff, 0xc3]), Buffer.from('b\n\n')])
    expect(await read([bytes])).toMatchObject([{ data: 'a\ufffd\ufffdb' }])
  })

  it('a line of very many parts is read once', async () => {
    function* parts(): Generator<string> {
      yield 'data: '
      // Each as a chunk of its own: read from the beginning each time, it would take minutes.
      for (let index = 0; index < 100_000; index += 1) yield 'x'.repeat(100)
      yield '\n\n'
    }
    const [event] = await read(parts())
    expect(event?.data).toHaveLength(10_000_000)
  })

  it.each([
    ['a line', 'x'],
    ['an event', `data: ${'x'.repeat(994)}\n`],
  ])('%s without end is given up', async (_what, text) => {
    function* endless(): Generator<string> {
      const chunk = text.repeat(1_000_000 / text.length)
      for (;;) yield chunk
    }
    await expect(read(endless())).rejects.toThrow('an event that is too long')
  })
})
