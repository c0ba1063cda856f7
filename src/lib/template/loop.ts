import { equals } from './compare.ts'
import { typeError } from './error.ts'
import { Budget } from './limits.ts'
import { Callable, orElse, Undefined, type Value } from './values.ts'

/** Where a `for` loop stands. */
export interface LoopState {
  items: readonly Value[]
  index: number
  depth: number
  changed: readonly Value[] | undefined
}

/** An attribute of `loop`; undefined: there is none of that name. */
export function loopMember(state: LoopState, name: string, budget: Budget): Value | undefined {
  const { items, index, depth } = state
  switch (name) {
    case 'index':
      return index + 1
    case 'index0':
      return index
    case 'revindex':
      return items.length - index
    case 'revindex0':
      return items.length - index - 1
    case 'first':
      return index === 0
    case 'last':
      return index === items.length - 1
    case 'length':
      return items.length
    case 'depth':
      return depth + 1
    case 'depth0':
      return depth
    case 'previtem':
      return orElse(items[index - 1], new Undefined('there is no previous item'))
    case 'nextitem':
      return orElse(items[index + 1], new Undefined('there is no next item'))
    case 'cycle':
      return new Callable('cycle', ({ positional }) => {
        if (positional.length === 0) throw typeError('no items for cycling given')
        return positional[index % positional.length] ?? null
      })
    case 'changed':
      return new Callable('changed', ({ positional }) => {
        const before = state.changed
        state.changed = positional
        return before === undefined || !equals(before, positional, budget)
      })
    default:
      return undefined
  }
}
