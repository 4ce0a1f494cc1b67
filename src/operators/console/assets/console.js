// What the console's pages gain with a script. Every page works without it.

document.documentElement.dataset.script = 'on';
