const units = ['bytes', 'kB', 'MB', 'GB', 'TB']

/** `1 byte`, `999 bytes`, `1.5 kB`, `24 MB` */
export function formatBytes(bytes: number): string {
  if (bytes === 1) return '1 byte'
  let value = bytes
  let unit = 0
  // 999.95 would be shown as 1000.0.
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 || value >= 9.95 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
