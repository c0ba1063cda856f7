import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { JsonNumber, keysOf, readJson } from '../../lib/json/index.ts'
import { render, TemplateError, type HostFunction } from '../../lib/template/index.ts'
import { locateCode } from '../bundle.ts'
import { createPatientRenderer, findTemplates } from '../template-values.ts'
import { createTemplateThread, Room, type TemplateThread } from './index.ts'
import type { Job } from './messages.ts'

const thread = createTemplateThread()
afterAll(() => thread.stop())
const turn = { caller: 'ada', isRequest: false }
const free = (): void => undefined

function jobOf(text: string, variables: Job['variables'] = {}, filters: Job['filters'] = {}): Job {
  const { left: room } = new Room()
  return { texts: [text], variables, filters, maxSteps: 200_000, maxWork: 64 * 2 ** 20, maxMilliseconds: 2000, room }
}

type Outcome = { value: unknown } | { code: unknown; message: string; isForeign: boolean }

async function outcomeOf(work: () => unknown): Promise<Outcome> {
  try {
    return { value: await work() }
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    const { code, message, isForeign } = error
    return { code, message, isForeign }
  }
}

/** The same template in the thread and on this one. */
async function both(text: string, variables: Job['variables'] = {}, filters: Job['filters'] = {}): Promise<Outcome[]> {
  return Promise.all([
    outcomeOf(async () => (await thread.render(turn, jobOf(text, variables, filters), free)).values[0]),
    outcomeOf(() => render(text, variables, { filters })),
  ])
}

/** A thread of its own, with other code. */
function createThreadOf(code: string, maxMilliseconds?: number): TemplateThread {
  const file = new URL(`data:text/javascript,${encodeURIComponent(code)}`)
  const other = createTemplateThread({ file, ...(maxMilliseconds === undefined ? {} : { maxMilliseconds }) })
  onTestFinished(() => other.stop())
  return other
}

const prelude = `import { parentPort } from 'node:worker_threads'; parentPort.postMessage({ kind: 'ready' });`

describe('results and errors are those of the server itself', () => {
  const folder = new URL('../../../tests/golden/jinja/', import.meta.url)
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))

  test.each(files)('%s', async (name) => {
    // The generator writes this shape.
    const { context, cases } = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as {
      context: Record<string, unknown>
      cases: { template: string }[]
    }
    const outcomes = await Promise.all(
      cases.map(async ({ template }) => [template, ...(await both(template, context))]),
    )
    expect(outcomes.map(([template, there]) => [template, there])).toEqual(
      outcomes.map(([template, , here]) => [template, here]),
    )
  })

  test('numbers keep their digits and objects the order of their keys', async () => {
    const given = readJson('{"z":1.50,"2":12345678901234567890,"1":-0,"__proto":[null,{"b":1,"a":2}]}')
    const [there, here] = await both('{{ given }}', { given })
    expect(there).toEqual(here)
    const value = (there as { value: Record<string, unknown> }).value
    expect(keysOf(value)).toEqual(['z', '2', '1', '__proto'])
    expect(value['2']).toEqual(new JsonNumber('12345678901234567890'))
  })

  test('values and results of many pieces', async () => {
    const list = Array.from({ length: 50_000 }, (_, index) => ({ index }))
    const text = 'ä'.repeat(3_000_000)
    const [there] = await both('{{ [list, text] }}', { list, text })
    expect(there).toEqual({ value: [list, text] })
  })
})

describe('what belongs to the server', () => {
  test('each read asks it, with names and errors as there', async () => {
    const reads: string[] = []
    const inner = { get: (name: string) => `value of ${name}`, value: () => 'own value' }
    const kv = {
      get: (name: string) => {
        reads.push(name)
        return name === 'none' ? undefined : inner
      },
    }
    for (const text of [
      '{{ kv.a.b }}',
      '{{ kv.a }}',
      '{{ kv.none }}',
      "{{ 'a' in kv }}",
      '{{ kv }}',
      '{{ kv.a | upper }}',
    ]) {
      const [there, here] = await both(text, { kv })
      expect([text, there]).toEqual([text, here])
    }
    expect(reads).toContain('none')
  })

  test('an error of a namespace arrives as it is', async () => {
    const denied = new Error('denied')
    const kv = {
      get: (): never => {
        throw denied
      },
    }
    await expect(thread.render(turn, jobOf('{{ kv.a }}', { kv }), free)).rejects.toBe(denied)
  })

  test('functions get their arguments, and their errors have the same words', async () => {
    const calls: unknown[] = []
    const filters: Record<string, HostFunction> = {
      decrypt_kv: (...given) => {
        calls.push(given)
        if (given[0][0] === 'bad') throw new Error('the key does not fit')
        return 'plain'
      },
    }
    for (const text of ["{{ 'x' | decrypt_kv('a', b=[1]) }}", "{{ 'bad' | decrypt_kv }}"]) {
      const [there, here] = await both(text, {}, filters)
      expect([text, there]).toEqual([text, here])
    }
    expect(calls).toHaveLength(4)
    expect(calls[0]).toEqual([['x', 'a'], { b: [1] }])
  })

  test('a template cannot ask without end', async () => {
    const kv = { get: (name: string) => name }
    const job = jobOf('{% for i in range(20000) %}{{ kv[i ~ ""] }}{% endfor %}', { kv })
    expect(await outcomeOf(() => thread.render(turn, job, free))).toMatchObject({
      code: 'LIMIT',
      message: 'the templates read more than 10000 times from outside',
    })
  })
})

describe('the renderer of a request', () => {
  /** More than the server does itself. */
  const long = '{% for i in range(10000) %}x{% endfor %}'

  async function renderAll(given: unknown, variables: Record<string, unknown> = {}): Promise<unknown> {
    const found = findTemplates(given) ?? { count: 0, isTooLong: false }
    return createPatientRenderer(thread, turn, found).render('p', given, new Map(Object.entries(variables)))
  }

  test('long and short templates stand where they were, as keys too', async () => {
    const given = { [`${long}{{ n }}`]: ['{{ n }}', long, 'text', '{{ [n, n] }}'], 'k{{ n }}': `${long}!` }
    const x = 'x'.repeat(10_000)
    expect(await renderAll(given, { n: 1 })).toEqual({ [`${x}1`]: [1, x, 'text', [1, 1]], k1: `${x}!` })
  })

  test('only what the long templates read is sent', async () => {
    const other = { get: (): never => expect.fail('read') }
    expect(await renderAll([long, '{{ n }}'], { n: 1, other, unsendable: new Date() })).toHaveLength(2)
  })

  test.each([
    ['{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}', 'needs more than 200000 steps'],
    [`{{ ([[1] * 1000] * 200) * 3 }}`, 'the templates give more than 200000 values together'],
    [
      Array.from({ length: 40 }, () => "{{ 'x' * 1000000 }}"),
      'the templates give more than 33554432 characters together',
    ],
  ])('%.40s', async (given, message) => {
    await expect(renderAll(given)).rejects.toMatchObject({
      code: 'TEMPLATE_FAILED',
      message: expect.stringContaining(message) as unknown,
    })
  })
})

describe('many jobs', () => {
  test('callers take turns, and a request of one who waits for too many is refused', async () => {
    const done: string[] = []
    const ask = (caller: string, isRequest = true): Promise<unknown> =>
      thread.render({ caller, isRequest }, jobOf('{{ 1 }}'), free).then(() => done.push(caller))
    const asked = [ask('ada'), ask('ada'), ask('ada'), ask('ben'), ask('ben'), ask('eve')]
    await Promise.all(asked)
    expect(done).toEqual(['ada', 'ada', 'ben', 'eve', 'ada', 'ben'])

    const many = Array.from({ length: 17 }, () => ask('ada'))
    await expect(ask('ada')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    const others = Array.from({ length: 8 }, (_, index) =>
      Array.from({ length: 14 }, () => ask(`user ${index}`)),
    ).flat()
    await expect(ask('eve')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await Promise.all([...many, ...others, ask('rules of ada', false)])
  })

  test('a thread that ends is replaced, and its job done again', async () => {
    const folder = makeFolder()
    onTestFinished(() => folder.remove())
    const marker = join(folder.path, 'ended')
    const real = locateCode('./template-thread', new URL('rendering.ts', import.meta.url).href)
    const other = createThreadOf(`
      import { existsSync, writeFileSync } from 'node:fs'
      const marker = ${JSON.stringify(marker)}
      if (existsSync(marker)) await import(${JSON.stringify(real)})
      else {
        writeFileSync(marker, '')
        process.exit(1)
      }`)
    const asked = [1, 2, 3].map(async (n) => (await other.render(turn, jobOf('{{ n + 1 }}', { n }), free)).values[0])
    expect(await Promise.all(asked)).toEqual([2, 3, 4])
  })

  test('one that ends each time gives a refusal', async () => {
    const other = createThreadOf(`${prelude} parentPort.once('message', () => process.exit(1))`)
    const outcome = await outcomeOf(() => other.render(turn, jobOf('{{ 1 }}'), free))
    expect(outcome).toMatchObject({
      code: 'LIMIT',
      message: 'rendering it failed twice: the thread for templates ended',
    })
  })

  test('one that does not answer is replaced', async () => {
    const other = createThreadOf(`${prelude} parentPort.once('message', () => { for (;;); })`, 20)
    for (const _ of [1, 2]) {
      expect(await outcomeOf(() => other.render(turn, jobOf('{{ 1 }}'), free))).toMatchObject({ code: 'LIMIT' })
    }
  })

  it('refuses what waits when the server stops', async () => {
    const other = createThreadOf(`${prelude} parentPort.once('message', () => { for (;;); })`)
    const asked = [1, 2].map(() => other.render(turn, jobOf('{{ 1 }}'), free))
    const settled = Promise.allSettled(asked)
    await other.stop()
    const refused = { reason: { code: 'SHUTTING_DOWN' } }
    expect(await settled).toMatchObject([refused, refused])
    await expect(other.render(turn, jobOf('{{ 1 }}'), free)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
  })

  test('a job that sends too much is not sent, and the next one is', async () => {
    const pay = (): never => {
      throw new TemplateError('LIMIT', 'too much')
    }
    expect(await outcomeOf(() => thread.render(turn, jobOf('{{ 1 }}'), pay))).toMatchObject({ message: 'too much' })
    const [there, here] = await both('{{ 1 }}')
    expect(there).toEqual(here)
  })
})
