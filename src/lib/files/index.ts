export { readBoundedFile, readBoundedFileSync } from './bounded-file.ts'
export {
  problemOfContainedFile,
  createContainedFiles,
  readContainedBytes,
  readContainedFile,
  type ContainedProblem,
} from './contained-file.ts'
export { watchDirectories, type DirectoryWatch, type DirectoryWatchOptions } from './directory-watch.ts'
export { describeFileError, reasonOfFileError } from './file-error.ts'
export { watchFolders, type FolderWatch } from './folder-watch.ts'
export { openFolder } from './folder-handle.ts'
export { openLineFile, type LineFile, type Rotation } from './line-file.ts'
export { syncFolder, syncFolderSync, syncTree } from './sync-folder.ts'
export {
  createSecretFile,
  createSecretFileSync,
  makeFolder,
  replaceFile,
  replaceSecretFile,
  linkTargetOf,
  type FileOwnership,
} from './secret-file.ts'
