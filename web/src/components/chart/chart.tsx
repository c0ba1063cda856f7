/**
 * Values over time, as lines or as bars on top of each other. The arrow keys and the pointer move along the time; whoever
 * sees none of it hears the values at the place, or opens the table.
 */
import type { JSX } from 'preact'
import { useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { barsPath, linePath, nearest, stack, timeTicks, valueScale, withGaps } from './scale.ts'
import './chart.css'

export interface ChartSeries {
  name: string
  /** One for each time; undefined: there was nothing to measure. */
  values: readonly (number | undefined)[]
  /** Custom property of the style sheet, without its dashes. */
  colour: 'success' | 'failure' | 'waiting' | 'running' | 'neutral'
  /** Lines differ in more than their colour. Default solid. */
  line?: 'solid' | 'dashed' | 'dotted'
}

export interface ChartProps {
  title: string
  /** What the values are. */
  about: string
  kind: 'lines' | 'bars'
  /** Milliseconds since the epoch, ascending: when each sample begins. */
  times: readonly number[]
  stepMs: number
  /** What is shown, from the first time to behind the last one. */
  from: number
  to: number
  series: readonly ChartSeries[]
  format: (value: number) => string
  /** Values are whole numbers. */
  isWhole?: boolean
  /** What should not be reached. */
  limit?: { value: number; name: string }
  /** Index of the sample that is looked at; undefined: the last one. */
  cursor: number | undefined
  onCursor: (index: number | undefined) => void
}

const HEIGHT = 158
const MARGIN = { top: 16, right: 14, bottom: 22, left: 62 }
const FALLBACK_WIDTH = 480

const hourAndMinute = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })

export function Chart(props: ChartProps): JSX.Element {
  const { title, about, times, stepMs, series, format, cursor, onCursor } = props
  const id = useId()
  const element = useRef<HTMLDivElement>(null)
  const width = useWidth(element)
  const last = times.length - 1
  const index = cursor === undefined || cursor > last ? last : cursor
  const time = times[index]

  const plot = { left: MARGIN.left, width: Math.max(1, width - MARGIN.left - MARGIN.right) }
  const drawing = useMemo(
    () => draw(props, plot.width),
    [times, series, props.from, props.to, plot.width, props.limit?.value],
  )

  function follow(event: { clientX: number; currentTarget: HTMLElement }): void {
    const { left } = event.currentTarget.getBoundingClientRect()
    const share = (event.clientX - left) / plot.width
    // The middle of a sample is nearer than its neighbours.
    const at = props.from + share * (props.to - props.from) - stepMs / 2
    onCursor(nearest(times, at))
  }

  return (
    <figure class="chart" aria-labelledby={`${id}-title`} aria-describedby={`${id}-about`}>
      <figcaption>
        <h3 id={`${id}-title`}>{title}</h3>
        <span class="hint" id={`${id}-about`}>
          {about}
        </span>
      </figcaption>
      <ul class="legend">
        {series.map(({ name, values, colour, line = 'solid' }) => (
          <li key={name}>
            <svg width="18" height="10" aria-hidden="true" class={props.kind}>
              {props.kind === 'bars' ? (
                <rect width="12" height="10" x="3" data-colour={colour} />
              ) : (
                <path d="M1 5h16" data-colour={colour} data-line={line} />
              )}
            </svg>
            {name} <b>{valueText(values[index], format)}</b>
          </li>
        ))}
      </ul>
      <div class="chart-area" ref={element}>
        <svg class={props.kind} width={width} height={HEIGHT} aria-hidden="true">
          {drawing.ticks.map(({ value, y }) => (
            <g key={value}>
              <path class="grid" d={`M${plot.left} ${y}h${plot.width}`} />
              <text class="axis" x={plot.left - 8} y={y + 4} text-anchor="end">
                {format(value)}
              </text>
            </g>
          ))}
          {drawing.timeTicks.map(({ tick, x }) => (
            <text key={tick} class="axis" x={plot.left + x} y={HEIGHT - 5} text-anchor="middle">
              {hourAndMinute.format(tick)}
            </text>
          ))}
          <g transform={`translate(${plot.left} 0)`}>
            {drawing.limitY !== undefined && <path class="limit" d={`M0 ${drawing.limitY}h${plot.width}`} />}
            {drawing.paths.map((path, i) => (
              <path
                key={series[i]?.name}
                class="series"
                d={path}
                data-colour={series[i]?.colour}
                data-line={series[i]?.line}
              />
            ))}
            {cursor !== undefined && time !== undefined && (
              <>
                <path class="cursor" d={`M${drawing.x(time + stepMs / 2)} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}`} />
                <text class="cursor-time" x={drawing.x(time + stepMs / 2)} y={11} text-anchor="middle">
                  {hourAndMinute.format(time)}
                </text>
              </>
            )}
          </g>
        </svg>
        {times.length > 0 && (
          <input
            type="range"
            class="chart-cursor"
            aria-label={`Time in ${title}`}
            aria-valuetext={textOf(time, series, index, format)}
            min={0}
            max={last}
            step={1}
            value={index}
            onInput={(event) => onCursor(Number(event.currentTarget.value))}
            onFocus={() => onCursor(index)}
            onBlur={() => onCursor(undefined)}
            onPointerMove={follow}
            onPointerLeave={() => onCursor(undefined)}
          />
        )}
        {times.length === 0 && <p class="chart-empty">No samples yet. The server stores one a minute.</p>}
      </div>
      <TableOfValues {...props} />
    </figure>
  )
}

interface Drawing {
  ticks: { value: number; y: number }[]
  timeTicks: { tick: number; x: number }[]
  /** One for each series. */
  paths: string[]
  limitY: number | undefined
  readonly x: (time: number) => number
}

/** Of bars, between two. */
const BAR_GAP = 1

function draw({ kind, times, stepMs, from, to, series, isWhole, limit }: ChartProps, width: number): Drawing {
  const stacked = kind === 'bars' ? stack(series.map(({ values }) => values)) : undefined
  const highest =
    stacked === undefined
      ? Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)))
      : Math.max(0, ...(stacked.at(-1) ?? []).map(([, end]) => end))
  const { max, ticks } = valueScale(highest, isWhole)
  const plotHeight = HEIGHT - MARGIN.top - MARGIN.bottom
  const x = (time: number): number => ((time - from) / Math.max(1, to - from)) * width
  const y = (value: number): number => Math.round((MARGIN.top + plotHeight * (1 - value / max)) * 10) / 10
  const barWidth = Math.max(1, x(from + stepMs) - BAR_GAP)
  const paths =
    stacked === undefined
      ? series.map(({ values }) =>
          linePath(
            withGaps(times, stepMs, (i) => {
              const value = values[i]
              return value === undefined ? undefined : { x: x((times[i] ?? 0) + stepMs / 2), y: y(value) }
            }),
          ),
        )
      : stacked.map((ends) =>
          barsPath(
            ends.map(([start, end], i) => ({ x: x(times[i] ?? 0), width: barWidth, top: y(end), bottom: y(start) })),
          ),
        )
  // Of the present day: where clocks are put forward at night, marks of the time before are an hour off.
  const offset = -new Date(to).getTimezoneOffset() * 60_000
  return {
    ticks: ticks.map((value) => ({ value, y: y(value) })),
    timeTicks: timeTicks(from, to, offset, Math.max(2, Math.floor(width / 60)))
      .map((tick) => ({ tick, x: x(tick) }))
      // The last one would be cut.
      .filter((tick) => tick.x < width - 12),
    paths,
    limitY: limit !== undefined && limit.value <= max ? y(limit.value) : undefined,
    x,
  }
}

/** All values, to read or copy. */
function TableOfValues({ title, times, series, format }: ChartProps): JSX.Element {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        Table<span class="visually-hidden">: {title}</span>
      </summary>
      {isOpen && (
        <div class="table-scroll chart-table">
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times
                .map((time, i) => (
                  <tr key={time}>
                    <th scope="row">{hourAndMinute.format(time)}</th>
                    {series.map(({ name, values }) => (
                      <td key={name}>{valueText(values[i], format)}</td>
                    ))}
                  </tr>
                ))
                .toReversed()}
            </tbody>
          </table>
        </div>
      )}
    </details>
  )
}

function valueText(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '–' : format(value)
}

function textOf(
  time: number | undefined,
  series: readonly ChartSeries[],
  index: number,
  format: (value: number) => string,
): string {
  if (time === undefined) return ''
  const values = series.map(
    ({ name, values: all }) => `${name} ${all[index] === undefined ? 'none' : valueText(all[index], format)}`,
  )
  return `${hourAndMinute.format(time)}: ${values.join(', ')}`
}

function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(FALLBACK_WIDTH)
  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return
    const look = (): void => setWidth(current.clientWidth)
    look()
    const observer = new ResizeObserver(look)
    observer.observe(current)
    return () => observer.disconnect()
  }, [])
  return width
}
