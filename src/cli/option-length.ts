/** Distinguishes options from operands before commander parses them. */
import type { Option } from 'commander'

/** How many arguments from `index` on belong to the option there; 0 when there is an operand. */
export function optionLength(args: readonly string[], index: number, options: readonly Option[]): number {
  const arg = args[index]
  if (arg === undefined || isOperand(arg)) return 0
  if (arg.startsWith('--')) {
    const option = options.find(({ long }) => long === arg)
    return option === undefined ? 1 : 1 + valueCount(args, index + 1, option)
  }
  // A cluster such as -aj; the first option in it that takes a value takes the rest of the cluster.
  for (let at = 1; at < arg.length; at += 1) {
    const option = options.find(({ short }) => short === `-${arg.charAt(at)}`)
    if (option?.required === true) return at === arg.length - 1 ? 1 + valueCount(args, index + 1, option) : 1
  }
  return 1
}

function valueCount(args: readonly string[], index: number, option: Option): number {
  const isFollowed = isOperand(args[index])
  if (!option.required) return option.optional && isFollowed ? 1 : 0
  let count = 1
  while (option.variadic && isOperand(args[index + count])) count += 1
  return count
}

/** Whether an argument exists and is not an option. Negative numbers are not options. */
function isOperand(arg: string | undefined): boolean {
  return arg !== undefined && (!arg.startsWith('-') || arg === '-' || isNegativeNumber(arg))
}

function isNegativeNumber(arg: string): boolean {
  return /^-(?:\d+|\d*\.\d+)(?:e[+-]?\d+)?$/i.test(arg)
}

/** Heading that the options of all commands stand under, below those of the command itself. */
export const commonGroup = 'Common options:'
