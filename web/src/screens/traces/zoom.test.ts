import { describe, expect, test } from 'vitest'
import { traceFilterOf, isTraceFiltered, traceQueryOf } from './tag-search.ts'
import { firstScale, fitScale, MAX_SCALE, MIN_SCALE, scrollAfterZoom, zoomedIn, zoomedOut } from './zoom.ts'

describe('a drawing is shown', () => {
  const view = { width: 1000, height: 500 }

  test('whole where it fits, and never larger than drawn', () => {
    expect(fitScale({ width: 2000, height: 500 }, view)).toBe(0.5)
    expect(fitScale({ width: 100, height: 100 }, view)).toBe(1)
    expect(fitScale({ width: 0, height: 0 }, view)).toBe(1)
    expect(fitScale({ width: 1e6, height: 1 }, view)).toBe(MIN_SCALE)
  })

  test('first as large as it can be read', () => {
    expect(firstScale({ width: 1250, height: 300 }, view)).toBe(0.8)
    expect(firstScale({ width: 800, height: 50_000 }, view)).toBe(1)
    expect(firstScale({ width: 50_000, height: 100 }, view)).toBe(0.7)
  })

  test('larger and smaller within bounds', () => {
    expect(zoomedOut(zoomedIn(1))).toBe(1)
    expect(zoomedIn(MAX_SCALE)).toBe(MAX_SCALE)
    expect(zoomedOut(MIN_SCALE)).toBe(MIN_SCALE)
  })

  test('with what is pointed at where it was', () => {
    // 300 pixels into the view stands what is at 800 of the drawing.
    const scroll = scrollAfterZoom(500, 300, 1, 2)
    expect((scroll + 300) / 2).toBe(800)
  })
})

describe('looking for traces', () => {
  const query = (text: string) => traceQueryOf(traceFilterOf(new URLSearchParams(text)))

  test('takes the beginning of a tag, or an id', () => {
    expect(query('tag=order-')).toMatchObject({ trace_tag_prefix: 'order-' })
    expect(query('tag=6b022c7830723bbcf2cf1014')).toMatchObject({ id: '6b022c7830723bbcf2cf1014' })
    expect(query('tag=6B022C7830723BBCF2CF1014')).toMatchObject({ trace_tag_prefix: '6B022C7830723BBCF2CF1014' })
  })

  test('or a member', () => {
    expect(query('execution=%20a%20&rule=b&trigger_instance=c&other=d')).toEqual({
      execution: 'a',
      rule: 'b',
      trigger_instance: 'c',
      trace_tag_prefix: '',
    })
    expect(isTraceFiltered(traceFilterOf(new URLSearchParams('rule=b')))).toBe(true)
    expect(isTraceFiltered(traceFilterOf(new URLSearchParams('tag=%20')))).toBe(false)
  })
})
