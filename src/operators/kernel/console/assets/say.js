// Tells a screen reader what just happened, in one polite region for the whole page.

let region;

export function say(text) {
  if (!region) {
    region = document.createElement('div');
    region.className = 'unseen';
    region.setAttribute('role', 'status');
    document.body.append(region);
  }
  region.textContent = text;
}
