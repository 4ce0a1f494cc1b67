// What the console and the sandbox's dashboard both stand on: escaped HTML, the frame of a page, its headers and its looks,
// forms, a cookie, and the refusal of forged requests. Does not know what they show.
// The door of this room: other rooms import from this file alone.

export { type Assets, createAssets } from './assets.ts';
export { clearCookie, type CookieOptions, readCookie, setCookie } from './cookies.ts';
export { type DocumentParts, renderDocument, seeOther, sendPage } from './document.ts';
export { isForged } from './forged-requests.ts';
export { FormError, readForm } from './form.ts';
export { ANSWER_HEADERS, answerHeaders, pageHeaders } from './headers.ts';
export { type Content, type Html, html } from './html.ts';
export { BASE_STYLE, ICON } from './looks.ts';
export { addressWithin } from './own-address.ts';
