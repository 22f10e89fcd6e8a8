#include "api/v1/approvals_page.h"

namespace osb::api::v1 {

const std::string_view kApprovalsHtml = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Approvals · OpenSandbox</title>
<link rel="stylesheet" href="/approvals/style.css">
<script src="/approvals/app.js" defer></script>
</head>
<body>
<header>
  <h1>Approvals</h1>
  <p id="state" role="status" aria-live="polite">not connected</p>
</header>
<main>
  <form id="door" autocomplete="off">
    <label for="key">API key</label>
    <div class="row">
      <input id="key" type="password" autocomplete="off" spellcheck="false" autofocus placeholder="kept in this page only, until it is closed">
      <button type="submit">Connect</button>
    </div>
  </form>
  <section aria-labelledby="waiting-title">
    <h2 id="waiting-title">Waiting <span id="count">0</span></h2>
    <p id="none" class="quiet">No command waits for an answer.</p>
    <ul id="waiting"></ul>
  </section>
  <section aria-labelledby="settled-title">
    <h2 id="settled-title">Settled</h2>
    <ul id="settled"></ul>
  </section>
</main>
<template id="question">
  <li class="question">
    <pre class="command"></pre>
    <dl></dl>
    <div class="row answer">
      <input class="comment" type="text" maxlength="200" placeholder="comment (optional)" aria-label="comment">
      <button type="button" class="allow">Allow</button>
      <button type="button" class="deny">Deny</button>
    </div>
    <p class="problem" role="alert" hidden></p>
  </li>
</template>
</body>
</html>
)page";

const std::string_view kApprovalsScript = R"page('use strict';

// Everything that comes from the server is shown with textContent: a command is data, whatever it looks like.
const byId = (id) => document.getElementById(id);
const KEPT_SETTLED = 20;
const questions = new Map();  // approval id -> {approval, item, clock}
let key = '';
let connection = null;

const headers = (more = {}) => (key ? {'OPEN-SANDBOX-API-KEY': key, ...more} : more);
const say = (text, kind = '') => { byId('state').textContent = text; byId('state').dataset.kind = kind; };

function facts(list, rows) {
  list.replaceChildren();
  for (const [name, value] of rows) {
    if (!value) continue;
    const term = document.createElement('dt');
    const text = document.createElement('dd');
    term.textContent = name;
    text.textContent = value;
    list.append(term, text);
  }
}

function rowsOf(approval) {
  const part = approval.part && approval.part !== approval.command ? approval.part : '';
  return [['rule', approval.rule || 'default of the policy'], ['applies to', part], ['reason', approval.reason], ['sandbox', approval.session_id || 'not made yet'],
          ['asked by', approval.asked_by], ['asked at', new Date(approval.asked_at).toLocaleTimeString()], ['answered by', approval.answered_by],
          ['comment', approval.comment]];
}

async function answer(id, verdict) {
  const {item} = questions.get(id);
  const problem = item.querySelector('.problem');
  problem.hidden = true;
  for (const button of item.querySelectorAll('button')) button.disabled = true;
  try {
    const response = await fetch(`/v1/approvals/${encodeURIComponent(id)}`, {
      method: 'POST', headers: headers({'Content-Type': 'application/json'}),
      body: JSON.stringify({answer: verdict, comment: item.querySelector('.comment').value}),
    });
    const body = await response.json();
    if (!response.ok) throw new Error(body.message || `status ${response.status}`);
    settle(body);
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
    for (const button of item.querySelectorAll('button')) button.disabled = false;
  }
}

function ask(approval) {
  if (questions.has(approval.id)) return;
  const item = byId('question').content.firstElementChild.cloneNode(true);
  item.dataset.id = approval.id;
  item.querySelector('.command').textContent = approval.command;
  facts(item.querySelector('dl'), rowsOf(approval));
  const clock = document.createElement('dd');
  const term = document.createElement('dt');
  term.textContent = 'time left';
  item.querySelector('dl').append(term, clock);
  item.querySelector('.allow').addEventListener('click', () => answer(approval.id, 'allow'));
  item.querySelector('.deny').addEventListener('click', () => answer(approval.id, 'deny'));
  questions.set(approval.id, {approval, item, clock});
  byId('waiting').append(item);
  count();
}

function settle(approval) {
  const known = questions.get(approval.id);
  if (!known) return;
  questions.delete(approval.id);
  known.item.querySelector('.answer').remove();
  known.item.querySelector('.problem').remove();
  known.item.dataset.state = approval.state;
  facts(known.item.querySelector('dl'), [['outcome', approval.state], ...rowsOf(approval)]);
  byId('settled').prepend(known.item);
  while (byId('settled').children.length > KEPT_SETTLED) byId('settled').lastElementChild.remove();
  count();
}

function count() {
  byId('count').textContent = String(questions.size);
  byId('none').hidden = questions.size > 0;
  document.title = (questions.size ? `(${questions.size}) ` : '') + 'Approvals · OpenSandbox';
  tick();
}

function tick() {
  for (const {approval, clock} of questions.values()) {
    const left = Math.max(0, Math.round((Date.parse(approval.expires_at) - Date.now()) / 1000));
    clock.textContent = `${left} s`;
  }
}

function take(block) {
  let event = '';
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice(7);
    if (line.startsWith('data: ')) data += line.slice(6);
  }
  if (event === 'asked') ask(JSON.parse(data));
  if (event === 'settled') settle(JSON.parse(data));
}

// What waits is told first, so a new connection knows everything; what is gone meanwhile is no longer asked.
async function listen(mine) {
  const response = await fetch('/v1/approvals/watch', {headers: headers(), signal: mine.signal});
  if (response.status === 401) { connection = null; return say('the key is not accepted', 'bad'); }
  if (!response.ok) throw new Error(`status ${response.status}`);
  say('connected', 'good');
  for (const {item} of questions.values()) item.remove();
  questions.clear();
  count();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) throw new Error('the server closed the stream');
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) take(block);
  }
}

async function connect() {
  if (connection) connection.abort();
  const mine = connection = new AbortController();
  while (connection === mine) {
    try {
      await listen(mine);
    } catch (error) {
      if (connection !== mine) return;
      say(`not connected: ${error.message}; trying again`, 'bad');
      await new Promise((resume) => setTimeout(resume, 2000));
    }
  }
}

byId('door').addEventListener('submit', (event) => {
  event.preventDefault();
  key = byId('key').value.trim();
  byId('key').value = '';
  say('connecting');
  connect();
});
setInterval(tick, 1000);
)page";

const std::string_view kApprovalsStyle = R"page(:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #fff; --ink: #1b1f24; --quiet: #5b6572; --line: #d7dce2; --good: #14713d; --bad: #b3261e; --accent: #2457c5;
}
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171b; --card: #1d2127; --ink: #e8ebef; --quiet: #9aa4b1; --line: #333a43; --good: #5fd08f; --bad: #ff8a80; --accent: #8ab0ff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
header, main { max-width: 52rem; margin: 0 auto; padding: 1rem; }
header { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem; }
h1 { margin: 0; font-size: 1.5rem; }
h2 { font-size: 1rem; color: var(--quiet); }
#state { margin: 0; color: var(--quiet); }
#state[data-kind=good] { color: var(--good); }
#state[data-kind=bad] { color: var(--bad); }
form, .question { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; }
label { display: block; margin-bottom: .25rem; }
.row { display: flex; gap: .5rem; flex-wrap: wrap; }
input { flex: 1 1 12rem; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: .375rem; padding: .5rem .75rem; }
button { font: inherit; border: 1px solid var(--line); border-radius: .375rem; padding: .5rem 1.25rem; background: var(--card); color: var(--ink); cursor: pointer; }
button[type=submit] { background: var(--accent); border-color: var(--accent); color: var(--card); }
button.allow { background: var(--good); border-color: var(--good); color: var(--card); }
button.deny { border-color: var(--bad); color: var(--bad); }
button:disabled { opacity: .5; cursor: default; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: .75rem; }
.command { margin: 0 0 .75rem; padding: .75rem; background: var(--ground); border-radius: .375rem; overflow: auto; max-height: 12rem; white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .125rem 1rem; margin: 0 0 .75rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
.problem { color: var(--bad); margin: .5rem 0 0; }
#settled .question { opacity: .85; border-left: .375rem solid var(--line); }
#settled .question[data-state=allowed] { border-left-color: var(--good); }
#settled .question[data-state=denied], #settled .question[data-state=expired] { border-left-color: var(--bad); }
)page";

}  // namespace osb::api::v1
