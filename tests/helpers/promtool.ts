/** Prometheus' own judge of metrics and rules. */
import { spawnSync } from 'node:child_process'
import { extractDebianProgram } from './apt.ts'

/** @returns what it complains about; empty: nothing */
export async function promtool(args: string[], input = ''): Promise<string> {
  const program = await extractDebianProgram('prometheus', 'usr/bin/promtool')
  const { status, stdout, stderr, error } = spawnSync(program, args, { input, encoding: 'utf8' })
  if (error !== undefined) throw error
  return status === 0 ? '' : `${stdout}${stderr}`.trim() || `promtool ended with ${status}`
}

export interface PromSample {
  name: string
  labels: Record<string, string>
  value: number
}

/** Samples of a page that promtool has found to be right. */
export function readSamples(page: string): PromSample[] {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value] = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', text = '']) => [key, text])
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) } // pairs of texts
    })
}
