// Sends the sign-in form without leaving the page, and shows what the server says.

export async function submitLogin(form, notify) {
  const response = await fetch("/login", { method: "POST", body: new FormData(form) });
  if (response.status === 429) {
    notify("Too many attempts. Wait a minute.");
    return false;
  }
  return response.redirected;
}

export class Countdown {
  constructor(seconds, onDone) {
    this.left = seconds;
    this.onDone = onDone;
  }

  tick() {
    this.left -= 1;
    if (this.left <= 0) {
      this.onDone();
    }
  }
}
