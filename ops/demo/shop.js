// Fills the basket. Everything stays in the page: the shop keeps nothing.
'use strict';

const basket = document.getElementById('basket');
const total = document.getElementById('total');
const order = document.querySelector('#order button');
let cents = 0;

const euros = (amount) => `€ ${(amount / 100).toFixed(2)}`;

for (const button of document.querySelectorAll('button[data-name]')) {
  button.addEventListener('click', () => {
    basket.querySelector('.empty')?.remove();
    const line = document.createElement('li');
    line.textContent = `${button.dataset.name}, ${euros(Number(button.dataset.cents))}`;
    basket.append(line);
    cents += Number(button.dataset.cents);
    total.textContent = euros(cents);
    order.disabled = false;
  });
}
