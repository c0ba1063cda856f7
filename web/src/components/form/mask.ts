/** Stands for a secret that the server has and does not show, as its `MASK` does. */
export const SHOWN_MASK = '********'
