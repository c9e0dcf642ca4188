/** Addresses that the project does not have yet. What needs one is left out while it is empty. */

/** The repository, such as `https://github.com/owner/name`: for links to source files, and to edit a page. */
export const REPOSITORY: string = ''

/** The site, such as `https://docs.example.com`: for the sitemap, and the pictures of cards. The variable `SITE_URL` overrides it. */
export const SITE = process.env.SITE_URL ?? ''
