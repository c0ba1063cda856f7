/** docs/workflows.md: its first workflow, typed as it stands there, and each example definition, run on one server. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openConsole, stepsOf, type ConsoleSession } from '../helpers/console-session.ts'
import { blocksOf, docPage } from '../helpers/doc-blocks.ts'
import { makeFolder } from '../helpers/folders.ts'
import { executable } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'

const page = docPage('workflows.md')
const section = (heading: string, next: string): string => page.slice(page.indexOf(heading), page.indexOf(next))
const firstWorkflow = section('## First workflow', '## Definition by example')
const blocks = blocksOf(section('## Definition by example', '## Watch a run'))

/** Name, definition, and what a run gives: each `yaml` block and the `json` block after it. */
const examples = blocks.flatMap(({ language, text }, index) => {
  if (language !== 'yaml') return []
  const name = /^# (\w+)\n/.exec(text)?.[1] ?? ''
  return [{ name, definition: text, gives: load(blocks[index + 1]?.text ?? '') as Record<string, unknown> }]
})

/** The chain, its metadata, what it gives, and the same as a workflow. */
const chainBlocks = blocksOf(section('## Action chains', '## Moving from StackStorm'))
const [chainMetadata = '', chainDefinition = '', asWorkflow = ''] = chainBlocks.flatMap(({ language, text }) =>
  language === 'yaml' ? [text] : [],
)
interface ChainRun {
  report: string
  ran: Record<string, string>
}
const chainGives = load(chainBlocks.find(({ language }) => language === 'json')?.text ?? '') as Record<string, ChainRun>
const { parameters } = load(chainMetadata) as { parameters: Record<string, object> }

const folder = makeFolder()
let app: WorkflowApp
let session: ConsoleSession

beforeAll(async () => {
  const basePath = join(folder.path, 'svc_data')
  const bin = join(folder.path, 'bin')
  mkdirSync(basePath)
  mkdirSync(bin)
  symlinkSync(executable, join(bin, 'svc'))
  const actions = examples.map(({ name, definition }) => [name, definition.replaceAll('tour.', 'flow.')])
  app = await createWorkflowApp(
    {
      ...(Object.fromEntries(actions) as Record<string, string>),
      publish_page: { definition: chainDefinition, runner: 'action-chain', parameters },
      publish_page_again: { definition: asWorkflow, parameters },
    },
    {},
    {
      ...folder,
      path: basePath,
    },
  )
  session = openConsole({
    folder: folder.path,
    env: {
      PATH: `${bin}:${process.env['PATH'] ?? ''}`,
      HOME: folder.path,
      LANG: 'C.UTF-8',
      SVC_API_URL: app.urls.api,
      SVC_AUTH_URL: app.urls.auth,
      SVC_STREAM_URL: app.urls.stream,
    },
  })
})
afterAll(async () => {
  await app.stop()
  folder.remove()
})

/** Answers every inquiry with yes until the execution has ended. */
async function answerUntilEnd(id: string): Promise<void> {
  await waitFor(`${id} to end`, async () => {
    const { body } = await app.call<{ id: string }[]>('GET', '/v1/inquiries')
    for (const inquiry of body) {
      await app.call('PUT', `/v1/inquiries/${inquiry.id}`, { id: inquiry.id, response: { continue: true } })
    }
    return !['requested', 'scheduled', 'running', 'pausing', 'paused'].includes((await app.execution(id)).status)
  })
}

describe('the first workflow', () => {
  const steps = blocksOf(firstWorkflow).flatMap(({ language, text }) => (language === 'console' ? stepsOf(text) : []))

  test.each(steps)('$command', async (step) => {
    const { printed, expected } = await session.play(step)
    // On a busy machine: a command that waits for long prints dots.
    expect(printed.replace(/^\.+\n/gm, '')).toBe(expected)
  })
})

describe('an example', () => {
  test('has a name of its own, and is followed by what it gives', () => {
    const names = examples.map(({ name }) => name)
    expect(names).not.toContain('')
    expect(new Set(names).size).toBe(names.length)
    expect(blocks.map(({ language }) => language)).toEqual(examples.flatMap(() => ['yaml', 'json']))
  })

  test.each(examples)('has no mistakes: $name', async ({ name, definition }) => {
    const answer = await fetch(`${app.urls.api}/v1/workflows/inspect?action=flow.${name}`, {
      method: 'POST',
      headers: { 'Content-Type': 'text/plain' },
      body: definition.replaceAll('tour.', 'flow.'),
    })
    expect(await answer.json()).toEqual([])
  })

  test.each(examples)('gives what the page says: $name', async ({ name, gives }) => {
    const { id } = await app.begin(name)
    await answerUntilEnd(id)
    const { status, result } = await app.ended(id)
    const runs = (await app.children(id)).length
    expect({ status, runs, ...(result as object) }).toMatchObject({ status: 'succeeded', ...gives })
  })
})

describe('the chain, and the same as a workflow', () => {
  const forms = ['publish_page', 'publish_page_again']

  test('the metadata name the runner and the definition', () => {
    expect(load(chainMetadata)).toMatchObject({
      runner_type: 'action-chain',
      entry_point: 'chains/publish_page.yaml',
    })
  })

  test.each(forms)('has no mistakes: %s', async (name) => {
    const answer = await fetch(`${app.urls.api}/v1/workflows/inspect?action=flow.${name}`, {
      method: 'POST',
      headers: { 'Content-Type': 'text/plain' },
      body: name === 'publish_page' ? chainDefinition : asWorkflow,
    })
    expect(await answer.json()).toEqual([])
  })

  test.each(Object.keys(chainGives).flatMap((shown) => forms.map((name) => ({ name, shown }))))(
    'gives what the page says: $name, $shown',
    async ({ name, shown }) => {
      const { id, status, result } = await app.run(name, { page: shown })
      const { published, output } = result as Record<'published' | 'output', Record<string, unknown> | undefined>
      const ran = (await app.children(id)).map(({ context, result: own }) => {
        const { chain, orquesta } = context as Record<'chain' | 'orquesta', Record<string, string> | undefined>
        return [chain?.['name'] ?? orquesta?.['task_name'], own['stdout']]
      })
      expect({ status, report: (published ?? output)?.['report'], ran: Object.fromEntries(ran) as unknown }).toEqual({
        status: 'succeeded',
        ...chainGives[shown],
      })
      expect(Object.keys(Object.fromEntries(ran) as object)).toEqual(Object.keys(chainGives[shown]?.ran ?? {}))
    },
  )
})
