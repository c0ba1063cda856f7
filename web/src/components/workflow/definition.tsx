/** The definition of a workflow: its graph beside its text, and its tasks as a list. */
import type { ComponentChildren, JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { request } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { WorkflowGraph } from '../../api/records.ts'
import { readJson } from '../../json.ts'
import { Failure } from '../failure.tsx'
import { Table } from '../table.tsx'
import { modelOf, type GraphBox, type GraphLink, type GraphModel } from './graph.ts'
import { GraphView, showRow } from './graph-view.tsx'

/** @param props.children shows the text */
export function WorkflowDefinition({ text, children }: { text: string; children: ComponentChildren }): JSX.Element {
  const { data, error, reload } = useLoaded(
    async (signal) => {
      const response = await request('POST', 'workflows/graph', { text, signal })
      return modelOf(readJson(await response.text()) as WorkflowGraph) // what the server declares
    },
    [text],
  )
  const list = useRef<HTMLDivElement>(null)
  return (
    <div class="flow-part">
      <div class="flow-columns">
        {data !== undefined ? (
          <GraphView model={data} onChoose={(name) => showRow(list.current, name)} />
        ) : error !== undefined ? (
          <Failure error={error} onRetry={reload} />
        ) : (
          <p class="loading">Loading…</p>
        )}
        {children}
      </div>
      <div ref={list} class="flow-list">
        {data !== undefined && data.boxes.length > 0 && <Tasks model={data} />}
      </div>
    </div>
  )
}

function Tasks({ model: { boxes, links } }: { model: GraphModel }): JSX.Element {
  const leaving = useMemo(() => {
    const found = new Map<string, GraphLink[]>()
    for (const link of links) found.set(link.from, [...(found.get(link.from) ?? []), link])
    return found
  }, [links])
  return (
    <Table label="Tasks">
      <thead>
        <tr>
          <th scope="col">Task</th>
          <th scope="col">Action</th>
          <th scope="col">Notes</th>
          <th scope="col">Leads to</th>
        </tr>
      </thead>
      <tbody>
        {boxes.map((box) => (
          <Row key={box.name} box={box} links={leaving.get(box.name) ?? []} />
        ))}
      </tbody>
    </Table>
  )
}

function Row({
  box: { name, kind, action, marks },
  links,
}: {
  box: GraphBox
  links: readonly GraphLink[]
}): JSX.Element {
  return (
    <tr tabIndex={-1} data-row={name}>
      <th scope="row" class="code">
        {name}
      </th>
      <td class="code">
        {kind === 'command' ? 'engine command' : kind === 'missing' ? 'not defined' : (action ?? '')}
      </td>
      <td>{marks.join(', ')}</td>
      <td>
        <ul>
          {links.map(({ to, conditions }) => (
            <li key={to}>
              {to}
              {conditions.length > 0 && (
                <>
                  {' '}
                  when <code>{conditions.join(' or ')}</code>
                </>
              )}
            </li>
          ))}
        </ul>
      </td>
    </tr>
  )
}
