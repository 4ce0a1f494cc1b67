// The files of the common looks. Each site serves them under its own path, among its assets.

export const BASE_STYLE = new URL('base.css', import.meta.url);
export const ICON = new URL('icon.svg', import.meta.url);
