/** The summary of an import as a person reads it. */
import { printable, renderTable } from '../output/print.ts'
import type { Session } from '../session.ts'
import type { ImportSummary } from './import.ts'
import type { Outcome } from './rows.ts'

/** Without a terminal. */
const PLAIN_WIDTH = 120
const MAX_PROBLEMS = 20
/** Packs that one line names. */
const MAX_NAMED = 10

const outcomes: readonly Outcome[] = ['imported', 'changed', 'replaced', 'unchanged', 'conflict', 'refused', 'skipped']

export async function printImport(session: Session, summary: ImportSummary): Promise<void> {
  const width = { terminalWidth: session.terminalWidth ?? PLAIN_WIDTH }
  const { counts, attention, attention_more: more, problems, left, history, environments } = summary
  const columns = outcomes.filter((outcome) => Object.values(counts).some((ofKind) => (ofKind[outcome] ?? 0) > 0))
  const rows = Object.entries(counts).map(([kind, ofKind]) => [
    kind,
    ...columns.map((outcome) => String(ofKind[outcome] ?? '')),
  ])
  if (rows.length > 0) await session.print(renderTable(['kind', ...columns], rows, width))
  else await session.print('There is nothing to import.\n')
  if (attention.length > 0) {
    const cells = attention.map(({ kind, name, outcome, why = '' }) => [kind, printable(name), outcome, printable(why)])
    await session.print(renderTable(['kind', 'name', 'outcome', 'why'], cells, width))
    if (more > 0) await session.print(`and ${more} more; the report has all.\n`)
  }
  for (const problem of problems.slice(0, MAX_PROBLEMS)) session.warn(problem)
  if (problems.length > MAX_PROBLEMS) session.warn(`and ${problems.length - MAX_PROBLEMS} more; -j lists them.`)
  await session.print(
    [
      ...left.map(({ kind, count, why }) => `Not taken over: ${count} of the kind ${kind}: ${why}.`),
      ...Object.entries(history).map(([kind, count]) => `Not taken over: ${count} of the kind ${kind}: history.`),
      ...summary.notes,
      ...describePacks(summary.packs_with_problems),
      ...(environments.length === 0
        ? []
        : [`Python environments to make: svc run packs.setup_virtualenv packs=${environments.join(',')}`]),
      ...(summary.proposed_conf === '' ? [] : [`Proposed configuration: ${summary.proposed_conf}`]),
      ...(summary.report === '' ? [] : [`Report: ${summary.report}`]),
      ...(summary.dry_run
        ? ['Nothing was changed (--dry-run).']
        : isUnchanged(summary)
          ? ['Nothing has changed.']
          : []),
    ]
      .map((line) => printable(`${line}\n`))
      .join(''),
  )
}

function describePacks(packs: readonly string[]): string[] {
  if (packs.length === 0) return []
  const more = packs.length > MAX_NAMED ? ` and ${packs.length - MAX_NAMED} more` : ''
  return [
    `Packs with content that svc cannot use: ${packs.slice(0, MAX_NAMED).join(', ')}${more}. svc migrate check says why.`,
  ]
}

function isUnchanged({ counts }: ImportSummary): boolean {
  return Object.values(counts).every(({ imported, changed, replaced }) => !imported && !changed && !replaced)
}
