/** Archives as nobody's tar would make them, for those who have to read them. */
import { gzipSync } from 'node:zlib'

export interface TarEntry {
  path: string
  /** Default a file; `5` is a folder, `2` a symbolic link, `1` a hard link, `3` a character device, `6` a pipe. */
  type?: '0' | '1' | '2' | '3' | '5' | '6'
  text?: string
  /** Where a link leads. */
  link?: string
  mode?: number
  /** What the header says, when that is not the length of the text. */
  size?: number
}

const BLOCK = 512

export function makeTar(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.text ?? '')
    return [headerOf(entry, entry.size ?? content.length), padded(content)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

export function makeTarGz(entries: readonly TarEntry[]): Buffer {
  return gzipSync(makeTar(entries))
}

function headerOf({ path, type = '0', link = '', mode = 0o644 }: TarEntry, size: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`
  header.write(path, 0, 100)
  header.write(octal(mode, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(size, 12), 124)
  header.write(octal(0, 12), 136)
  header.write('        ', 148)
  header.write(type, 156)
  header.write(link, 157, 100)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)])
}
