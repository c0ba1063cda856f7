/** Addresses of pages of the web client. */

/** @param webUrl address of the web client, without a trailing slash */
export const executionAddress = (webUrl: string, id: string): string => `${webUrl}/#/history/${id}/general`
