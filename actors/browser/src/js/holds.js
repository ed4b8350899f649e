function (text) {
  // Whether this field shows the text now, whatever it does with line ends and outer space.
  const plain = (value) => String(value).replace(/\s+/g, ' ').trim();
  const value = 'value' in this ? this.value : this.innerText;
  return plain(value) === plain(text);
}
