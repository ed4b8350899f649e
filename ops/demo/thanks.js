// Says back what was ordered with; text only, so that a note can not be markup.
'use strict';

const said = new URLSearchParams(location.search);
document.getElementById('who').textContent = said.get('name') || 'friend';
document.getElementById('said').textContent = said.get('note') || 'nothing';
