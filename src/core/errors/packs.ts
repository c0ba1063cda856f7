/** Errors of packs: their files, configurations and installation. */
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'

// Packs

export const packNotOnDisk = (name: string): AppError =>
  new AppError(
    'PACK_NOT_ON_DISK',
    `Pack "${shown(name)}" not found on disk: give its reference, or the path of a folder that lies directly in one of the folders of packs (content.system_packs_base_path, content.packs_base_paths).`,
    { details: { pack: shown(name) } },
  )

/** @param details `problems`, and how many more there are; the valid content is registered in any case */
export const packInvalid = (message: string, details: Readonly<Record<string, unknown>>): AppError =>
  new AppError('PACK_INVALID', message, { details: { ...details } })

/** The configuration of the pack or its schema does not exist. */
export const configNotFound = (pack: string): AppError =>
  new AppError('CONFIG_NOT_FOUND', `Unable to identify resource with pack_ref "${shown(pack)}".`)

/** @param message names the attribute */
/** @param path of the value in the configuration */
export const configInvalid = (message: string, path: readonly string[] = []): AppError =>
  new AppError('CONFIG_INVALID', message, { details: { path } })

/** @param problem what is wrong in which file */
export const configNotUsed = (pack: string, problem: string): AppError =>
  new AppError(
    'CONFIG_INVALID',
    `The configuration file of pack "${shown(pack)}" is not used: ${problem}. Correct it, then register the pack.`,
    { details: { path: [] } },
  )

/** The server cannot write to the folder of the configurations. */
export const configNotWritten = (pack: string, cause: unknown): AppError =>
  new AppError(
    'STORAGE_FAILED',
    `The configuration of pack "${shown(pack)}" could not be written; nothing was changed. The log of the server says why.`,
    { cause },
  )

/** @param key path in the configuration @param value the template, secrets masked */
export const configTemplateFailed = (pack: string, key: string, value: string, why: string): AppError =>
  new AppError(
    'TEMPLATE_FAILED',
    `Failed to render dynamic configuration value for key "${shown(key)}" with value "${shown(value)}" for pack "${shown(pack)}" config: ${why}`,
  )

export const packFileNotFound = (path: string): AppError =>
  new AppError('PACK_FILE_NOT_FOUND', `File "${shown(path)}" not found`)

export const packFileTooLarge = (path: string, maxBytes: number): AppError =>
  new AppError('PACK_FILE_TOO_LARGE', `File ${shown(path)} exceeds maximum allowed file size (${maxBytes} bytes)`, {
    details: { max_bytes: maxBytes },
  })

/** For the pack that is part of svc. */
export const packProtected = (): AppError =>
  new AppError(
    'PACK_PROTECTED',
    "Resources belonging to system level packs can't be manipulated; make a copy in a pack of your own.",
  )

export const packFolderMissing = (pack: string): AppError =>
  new AppError(
    'PACK_FOLDER_MISSING',
    `Content pack "${shown(pack)}" is not found or doesn't contain actions directory. Make the folder and register the pack first.`,
  )

/** @param path of a file that a request writes or removes, as sent or relative to the pack */
export const dataFileInvalid = (path: string, why: string): AppError =>
  new AppError('DATA_FILE_INVALID', `The file "${shown(path)}" cannot be used: ${why}.`)

/** @param path relative to the pack */
export const packFileDenied = (verb: 'write' | 'delete', path: string, cause: unknown): AppError =>
  new AppError(
    'PACK_FILE_DENIED',
    verb === 'delete'
      ? `No permission to delete "${shown(path)}" file from disk. The action was not deleted; permit the server's account to delete the file.`
      : `No permission to write "${shown(path)}" file to disk. Nothing was changed; permit the server's account to write there.`,
    { cause },
  )

/** @param path relative to the pack */
export const packFileFailed = (verb: 'write' | 'delete', path: string, cause: unknown): AppError =>
  new AppError(
    'PACK_FILE_FAILED',
    `The server could not ${verb} the file "${shown(path)}"; nothing was changed. The log of the server says why.`,
    { cause },
  )

// Installing packs

/** @param source as given; a password in it is not repeated */
export const packSourceUnusable = (source: string, why: string): AppError =>
  new AppError(
    'PACK_SOURCE_UNUSABLE',
    `No pack can be installed from "${shown(source.replace(/(\/\/[^/@:]*):[^/@]*@/g, '$1@'))}": ${why.replace(/\.$/, '')}.`,
  )

export const packTooLarge = (maxFiles: number, maxBytes: number): AppError =>
  new AppError(
    'PACK_TOO_LARGE',
    `The pack is too large: at most ${maxFiles} files, ${maxBytes} bytes and 40 nested folders are allowed.`,
  )

/** @param why the end of a sentence */
export const packsFolderUnusable = (why: string, cause: unknown): AppError =>
  new AppError(
    'PACKS_FOLDER_UNUSABLE',
    `Nothing was changed: the directory of packs (content.system_packs_base_path) cannot be used: ${why}.`,
    { cause },
  )

export const packReserved = (ref: string): AppError =>
  new AppError('PACK_RESERVED', `The pack "${shown(ref)}" is part of svc; it cannot be installed or removed.`)

export const packNotInstalled = (ref: string): AppError =>
  new AppError(
    'PACK_NOT_INSTALLED',
    `Pack "${shown(ref)}" is not installed; "svc pack list" prints the installed packs.`,
  )

/** @param ref where a copy should go */
export const destinationPackMissing = (ref: string): AppError =>
  new AppError(
    'PACK_NOT_INSTALLED',
    `Destination pack "${shown(ref)}" doesn't exist; "svc pack list" prints the installed packs.`,
  )

export const packRefused = (ref: string, why: string): AppError =>
  new AppError('PACK_REFUSED', `The pack "${shown(ref)}" was not changed: ${why.replace(/\.$/, '')}.`)

// Packs

/** The content is part of svc. @param kind such as `Policy` */
export const systemPackFixed = (kind: string, ref: string): AppError =>
  new AppError(
    'SYSTEM_PACK_FIXED',
    `${kind} "${shown(ref)}" belongs to the pack "${shown(ref.split('.')[0] ?? '')}", which is part of svc: its content cannot be created, changed or deleted; use another pack.`,
  )
