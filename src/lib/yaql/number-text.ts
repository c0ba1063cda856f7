import { MAX_NUMBER_CHARS } from '../json/index.ts'
import { valueError } from './error.ts'

const decimalDigit = /^\p{Nd}$/u
const foreignDigit = /(?![0-9])\p{Nd}/gu

/** The value of a decimal digit of any script: they come in runs of ten. */
function digitValue(digit: string): number {
  const code = digit.codePointAt(0) ?? 0
  let first = code
  while (decimalDigit.test(String.fromCodePoint(first - 1))) first -= 1
  return (code - first) % 10
}

/** The text with all decimal digits as ASCII. */
export function plainDigits(text: string): string {
  return text.replace(foreignDigit, (digit) => String(digitValue(digit)))
}

/** Decimal digits with an optional sign, as a plain number where it is exact. Throws ValueError for too many digits. */
export function integerFromText(text: string): number | bigint {
  const plain = plainDigits(text)
  if (plain.length > MAX_NUMBER_CHARS) {
    throw valueError(`Exceeds the limit (${MAX_NUMBER_CHARS} digits) for integer string conversion`)
  }
  const value = Number(plain)
  return Number.isSafeInteger(value) ? value + 0 : BigInt(plain)
}
