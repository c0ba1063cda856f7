/** The report of a check as a person reads it. */
import { describeProblem } from '../../lib/text/index.ts'
import { percentOf, sumOf, type CheckReport, type PackReport, type Share } from '../../migrate/index.ts'
import { printable, renderTable } from '../output/print.ts'
import type { Session } from '../session.ts'

/** Problems of one pack that are printed; `-j` has all. */
const MAX_SHOWN = 5
/** Refused records that are printed. */
const MAX_RECORDS = 50
/** Without a terminal. */
const PLAIN_WIDTH = 120

const shareText = (share: Share | undefined): string =>
  share === undefined ? '' : share.usable === share.total ? String(share.total) : `${share.usable} of ${share.total}`

export async function printCheck(session: Session, report: CheckReport): Promise<void> {
  const width = { terminalWidth: session.terminalWidth ?? PLAIN_WIDTH }
  if (report.packs.length > 0) {
    const rows = report.packs.map(({ pack, state, content, config }) => [
      printable(pack),
      state,
      shareText(content.actions),
      shareText(content.workflows),
      shareText(content.rules),
      shareText(content.sensors),
      config === 'none' ? '' : config,
    ])
    await session.print(
      renderTable(['pack', 'state', 'actions', 'workflows', 'rules', 'sensors', 'config'], rows, width),
    )
  }
  for (const pack of report.packs) await session.print(describePack(pack))
  if (report.options.length > 0) {
    const rows = report.options
      .filter(({ outcome }) => outcome !== 'default')
      .map(({ option, value, outcome, why }) => [option, printable(value), outcome, printable(why)])
    if (rows.length > 0) await session.print(renderTable(['option', 'value', 'outcome', 'why'], rows, width))
  }
  if (report.refused_records.length > 0) {
    const cells = report.refused_records
      .slice(0, MAX_RECORDS)
      .map(({ kind, name, why }) => [kind, printable(name), printable(why)])
    await session.print(renderTable(['kind', 'refused record', 'why'], cells, width))
    const more = report.refused_records.length - cells.length + report.refused_records_not_listed
    if (more > 0) await session.print(`and ${more} more refused records; -j lists the first 1000.\n`)
  }
  for (const problem of report.problems) session.warn(problem)
  for (const { path, why } of report.skipped) session.warn(`${path} was not read: ${why}`)
  if (report.skipped_not_listed > 0) session.warn(`${report.skipped_not_listed} more places were not read.`)
  await session.print(summaryOf(report))
}

function describePack(report: PackReport): string {
  const { pack, problems, warnings } = report
  if (problems.length + warnings.length === 0) return ''
  const lines = [
    ...listed(problems, report.problems_not_listed, ''),
    ...listed(warnings, report.warnings_not_listed, 'warning: '),
  ]
  return printable(`${pack}:\n${lines.join('')}`)
}

function listed(remarks: PackReport['problems'], notListed: number, before: string): string[] {
  const shown = remarks.slice(0, MAX_SHOWN).map((remark) => `  ${before}${describeProblem(remark)}\n`)
  const more = remarks.length - shown.length + notListed
  return more === 0 ? shown : [...shown, `  ${before}and ${more} more; -j lists them.\n`]
}

function summaryOf(report: CheckReport): string {
  const { packs, content, usable_percent: percent, needs_old_names: needsOldNames, left, history } = report
  const lines = Object.entries(content).map(
    ([kind, share]) => `${kind}: ${share.usable} of ${share.total} (${percentOf(share)} %)\n`,
  )
  const count = (state: PackReport['state']): number => packs.filter((pack) => pack.state === state).length
  const states = (['ready', 'partly', 'refused', 'included'] as const)
    .filter((state) => count(state) > 0)
    .map((state) => `${count(state)} ${state}`)
  const { usable, total } = sumOf(content)
  return [
    ...(packs.length === 0 ? [] : [`packs: ${states.join(', ')}\n`]),
    ...lines,
    ...Object.entries(left).map(([kind, number]) => `not taken over: ${number} of the kind ${kind}\n`),
    ...Object.entries(history).map(([kind, number]) => `history: ${number} of the kind ${kind}\n`),
    ...describeRequirements(packs),
    ...(needsOldNames ? ['Packs use names of StackStorm: set "stackstorm = True" in the section [compat].\n'] : []),
    ...(total === 0 ? [] : [`Usable: ${percent} % (${usable} of ${total}).\n`]),
  ].join('')
}

/** svc makes an environment of its own for each pack, with what the pack asks for. */
function describeRequirements(packs: readonly PackReport[]): string[] {
  const asking = packs.filter(({ requirements }) => requirements.length > 0)
  if (asking.length === 0) return []
  const names = asking.slice(0, MAX_SHOWN).map(({ pack }) => pack)
  const more = asking.length - names.length
  return [
    printable(
      `Python packages are still to be installed for ${names.join(', ')}${more === 0 ? '' : ` and ${more} more`}: svc run packs.setup_virtualenv packs=<pack>\n`,
    ),
  ]
}
