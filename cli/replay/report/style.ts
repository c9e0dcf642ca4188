/** The style of the page, after the one that it shares with the dashboard. A text, so that the package contains it. */
export const PAGE_STYLE = `
:root {
  --requests: light-dark(#a9cbec, #2f5b8a);
  --may-be-refused: light-dark(#eebd80, #a8763a);
  --refused: light-dark(#b3261e, #ef7169);
}

p,
li,
dd,
h1,
h3,
figcaption {
  overflow-wrap: anywhere;
}

ul {
  padding-left: 1.2rem;
}

article p {
  margin: 0.15rem 0;
}

pre {
  padding: 0.6rem 0.8rem;
  overflow-x: auto;
  border: 1px solid var(--line);
  border-radius: 6px;
  background: var(--panel);
}

figure {
  margin: 1rem 0;
}

figure p,
figcaption,
summary {
  color: var(--muted);
}

svg {
  display: block;
  width: 100%;
  height: 9rem;
  border-bottom: 1px solid var(--line);
}

.ends,
.legend {
  display: flex;
  flex-wrap: wrap;
  justify-content: space-between;
  margin: 0.2rem 0;
  padding: 0;
  font-size: 0.85rem;
  list-style: none;
}

.legend {
  justify-content: start;
  gap: 0 1rem;
}

.legend [class]::before {
  content: "";
  display: inline-block;
  width: 0.8em;
  height: 0.8em;
  margin-right: 0.35em;
  background: var(--series);
}

path {
  fill: var(--series);
}

.requests,
.keys {
  --series: var(--requests);
}

.may-be-refused {
  --series: var(--may-be-refused);
}

.refused,
.would-be-refused {
  --series: var(--refused);
}
`
