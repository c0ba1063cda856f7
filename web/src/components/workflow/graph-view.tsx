/** A workflow as it is drawn. What it shows stands in a table beside it, too. */
import type { JSX, TargetedKeyboardEvent } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { StatusBadge } from '../status-badge.tsx'
import { linkKey, MAX_DRAWN_TASKS, type GraphBox, type GraphModel } from './graph.ts'
import { layOut, TASK_HEIGHT, TASK_WIDTH, type PlacedTask } from './layout.ts'
import type { TaskState } from './run.ts'
import './workflow.css'

export interface GraphViewProps {
  model: GraphModel
  /** Of a run, by the name of the task. */
  states?: ReadonlyMap<string, TaskState>
  /** Transitions that were taken, as `takenOf` names them. */
  taken?: ReadonlySet<string>
  /** Of a task that the user wants to know more about. */
  onChoose: (name: string) => void
}

export function GraphView({ model, states, taken, onChoose }: GraphViewProps): JSX.Element {
  const { boxes } = model
  if (boxes.length === 0) return <p class="hint">The definition has no tasks.</p>
  if (boxes.length > MAX_DRAWN_TASKS) {
    return (
      <p class="hint">
        {boxes.length.toLocaleString()} tasks are too many to draw ({MAX_DRAWN_TASKS} at most). The list has all of
        them.
      </p>
    )
  }
  return <Drawing model={model} states={states} taken={taken} onChoose={onChoose} />
}

function Drawing({
  model,
  states,
  taken,
  onChoose,
}: {
  model: GraphModel
  states: GraphViewProps['states'] | undefined
  taken: GraphViewProps['taken'] | undefined
  onChoose: GraphViewProps['onChoose']
}): JSX.Element {
  const { boxes, links, starts, timeout } = model
  const layout = useMemo(
    () =>
      layOut(
        boxes.map(({ name }) => name),
        starts,
        links,
      ),
    [model],
  )
  const byName = useMemo(() => new Map(boxes.map((box) => [box.name, box])), [model])
  const view = useRef<HTMLDivElement>(null)
  /** The one that the tab key leads to. */
  const [active, setActive] = useState<string>()
  const first = layout.tasks[0]?.name
  const reached = active !== undefined && byName.has(active) ? active : first

  function onKeyDown(event: TargetedKeyboardEvent<HTMLElement>): void {
    if (event.ctrlKey || event.metaKey || event.altKey || reached === undefined) return
    const to = neighbour(layout.tasks, reached, event.key)
    if (to === undefined) return
    event.preventDefault()
    setActive(to)
    view.current?.querySelector<HTMLElement>(`[data-task="${CSS.escape(to)}"]`)?.focus()
  }

  return (
    <div ref={view} class="flow-view" role="group" aria-label="Graph" onKeyDown={onKeyDown}>
      {timeout !== null && <p class="hint flow-limit">The workflow may take {timeout} s.</p>}
      <svg width={layout.width} height={layout.height} viewBox={`0 0 ${layout.width} ${layout.height}`}>
        <g aria-hidden="true">
          {layout.edges.map(({ from, to, path, isBack }, i) => {
            const conditions = links[i]?.conditions ?? []
            return (
              <path
                key={`${from} ${to}`}
                d={path}
                class="flow-edge"
                data-back={isBack ? '' : undefined}
                data-conditional={conditions.length > 0 ? '' : undefined}
                data-taken={taken?.has(linkKey(from, to)) === true ? '' : undefined}
              >
                <title>{[`${from} → ${to}`, ...conditions].join('\n')}</title>
              </path>
            )
          })}
        </g>
        {layout.tasks.map(({ name, x, y }) => {
          const box = byName.get(name)
          return box === undefined ? null : (
            <foreignObject key={name} x={x} y={y} width={TASK_WIDTH} height={TASK_HEIGHT}>
              <Box
                box={box}
                state={states?.get(name)}
                isOfRun={states !== undefined}
                isReached={name === reached}
                onFocus={setActive}
                onChoose={onChoose}
              />
            </foreignObject>
          )
        })}
      </svg>
    </div>
  )
}

interface BoxProps {
  box: GraphBox
  state: TaskState | undefined
  isOfRun: boolean
  isReached: boolean
  onFocus: (name: string) => void
  onChoose: (name: string) => void
}

function Box({ box, state, isOfRun, isReached, onFocus, onChoose }: BoxProps): JSX.Element {
  const { name, kind, action, isJoin, marks } = box
  const what = kind === 'command' ? 'engine command' : kind === 'missing' ? 'not defined' : (action ?? 'no action')
  return (
    <button
      type="button"
      class="flow-task"
      tabIndex={isReached ? 0 : -1}
      data-task={name}
      data-kind={kind}
      data-status={state?.status}
      data-join={isJoin ? '' : undefined}
      title={[name, what, ...marks, ...(state === undefined ? [] : [state.status, state.note])].join('\n')}
      onFocus={() => onFocus(name)}
      onClick={() => onChoose(name)}
    >
      <span class="flow-name">{name}</span>
      <span class="flow-action">{what}</span>
      <span class="flow-foot">
        {state !== undefined && <StatusBadge status={state.status} />}
        <span>{isOfRun ? (state?.note ?? 'not started') : marks.join(' · ')}</span>
      </span>
    </button>
  )
}

/** The task that a key leads to: in the same row, or the nearest of the next row. */
function neighbour(tasks: readonly PlacedTask[], from: string, key: string): string | undefined {
  const at = tasks.findIndex(({ name }) => name === from)
  const task = tasks[at]
  if (task === undefined) return undefined
  const beside = (other: PlacedTask | undefined): string | undefined =>
    other !== undefined && other.row === task.row ? other.name : undefined
  const nearest = (row: number): string | undefined =>
    tasks
      .filter((other) => other.row === row)
      .reduce<PlacedTask | undefined>(
        (best, other) => (best === undefined || Math.abs(other.x - task.x) < Math.abs(best.x - task.x) ? other : best),
        undefined,
      )?.name
  switch (key) {
    case 'ArrowLeft':
      return beside(tasks[at - 1])
    case 'ArrowRight':
      return beside(tasks[at + 1])
    case 'ArrowDown':
      return nearest(task.row + 1)
    case 'ArrowUp':
      return nearest(task.row - 1)
    case 'Home':
      return tasks[0]?.name
    case 'End':
      return tasks.at(-1)?.name
    default:
      return undefined
  }
}

/** Brings the keyboard, and the eyes, to the row of a task. @param table that has it, with `data-row` */
export function showRow(table: HTMLElement | null, name: string): void {
  const rows = [...(table?.querySelectorAll<HTMLElement>(`[data-row="${CSS.escape(name)}"]`) ?? [])]
  rows.at(-1)?.focus()
}
