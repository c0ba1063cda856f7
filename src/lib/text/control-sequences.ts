/** What terminals take as commands in a text (ECMA-48, xterm): colours, titles, links, movements of the cursor. */

// Colours and movements, with their parameters, also when they break off at the end of a line; texts for the terminal, such as
// titles, when they end within a line; further ones of two or three characters; an introducer alone. Each part of the pattern
// ends where another could begin, so that the time grows with the text only.
const sequence =
  // eslint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\n\u0007\u001b\u0080-\u009f]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]?/g

/** The text without them. Line ends stay. */
export function withoutControlSequences(text: string): string {
  // A search for one character is much faster, and most output has none.
  const hasAny = text.includes('\u001b') || /[\u0080-\u009f]/.test(text)
  return hasAny ? text.replace(sequence, '') : text
}
