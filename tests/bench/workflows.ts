/** Rows about inspecting definitions of workflows. */
import { median, ms, type Row } from './report.ts'
import { startBenchServer } from './server.ts'

const TASKS = 10_000
const ROUNDS = 5
const MAX_MS = 1_000
const MAX_DELAY_MS = 50

const definitionOf = (tasks: number): string =>
  `tasks:\n${Array.from({ length: tasks }, (_, index) => {
    const next = index + 1 < tasks ? `t${index + 1}` : 'noop'
    return `  t${index}: {action: core.echo message=<% ctx(v) %>, next: [{publish: v=1, do: ${next}}]}\n`
  }).join('')}`

export async function inspecting(): Promise<Row[]> {
  const server = await startBenchServer()
  const inspect = async (definition: string): Promise<number> => {
    const started = performance.now()
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1/workflows/inspect`, {
      method: 'POST',
      headers: { 'Content-Type': 'text/plain' },
      body: definition,
    })
    await answer.text()
    if (answer.status !== 200) throw new Error(`the inspection was refused: ${answer.status}`)
    return performance.now() - started
  }
  const measure = async (tasks: number): Promise<number> => {
    const definition = definitionOf(tasks)
    await inspect(definition) // starts the thread
    const rounds: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) rounds.push(await inspect(definition))
    return median(rounds)
  }
  const tenth = await measure(TASKS / 10)
  await server.loopDelay()
  const whole = await measure(TASKS)
  const { max } = await server.loopDelay()
  await server.stop()
  return [
    {
      work: `inspecting a workflow of ${TASKS} tasks, p50`,
      ours: ms(whole),
      reference: `${ms(tenth)} for a tenth of them`,
      budget: ms(MAX_MS),
      isMet: whole <= MAX_MS,
    },
    {
      work: 'event loop meanwhile, longest delay',
      ours: ms(max),
      reference: '',
      budget: ms(MAX_DELAY_MS),
      isMet: max <= MAX_DELAY_MS,
    },
  ]
}
