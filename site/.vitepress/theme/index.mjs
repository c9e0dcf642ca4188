// Without the fonts of the default theme: the fonts of the system need no request.
import { onContentUpdated } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h, nextTick } from 'vue'
import NotFound from './NotFound.vue'
import './style.css'

/** Scrolls the sidebar, and not the page, to the link of the page that is open. */
function showActiveLink() {
  const sidebar = document.querySelector('.VPSidebar')
  const link = sidebar?.querySelector('.is-link.is-active:not(:has(.is-link.is-active))')
  if (!link) return
  const { top, bottom } = link.getBoundingClientRect()
  const frame = sidebar.getBoundingClientRect()
  if (top >= frame.top && bottom <= frame.bottom) return
  sidebar.scrollTop += top - frame.top - frame.height / 3
}

/** A group of the sidebar is one button. The default theme puts another one into it. The first page is a landmark. */
function mendRoles() {
  for (const caret of document.querySelectorAll('.VPSidebarItem .item[role="button"] .caret')) {
    caret.removeAttribute('role')
    caret.removeAttribute('tabindex')
    caret.removeAttribute('aria-label')
  }
  document.querySelector('.VPHome')?.setAttribute('role', 'main')
}

export default {
  extends: DefaultTheme,
  Layout: {
    setup() {
      onContentUpdated(() =>
        nextTick(() => {
          mendRoles()
          showActiveLink()
        }),
      )
      return () => h(DefaultTheme.Layout, null, { 'not-found': () => h(NotFound) })
    },
  },
}
