const counts = new Intl.NumberFormat('en-GB')
const sizes = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 })
const units = ['bytes', 'KB', 'MB', 'GB', 'TB'] as const

/** `1,234` */
export function formatCount(count: number): string {
  return counts.format(count)
}

/** `1 byte`, `12 bytes`, `1.2 MB` */
export function formatBytes(bytes: number): string {
  if (bytes === 1) return '1 byte'
  const power = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3))
  return `${sizes.format(bytes / 1000 ** power)} ${units[power]}`
}
