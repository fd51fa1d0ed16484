"""The sample files: the manual of a backup program, and some of its code."""

from __future__ import annotations

from typing import Final

SAMPLE_FILES: Final = {
    "docs/backup.md": """\
# Backups

## Choose when to back up

Open Settings and pick an hour of the day, or let Harbour wait until the laptop is plugged in and idle.
Most people choose the night: the machine is at home then, the network is quiet, and nobody minds the fan.
A run that was missed is made up for as soon as the lid is opened again, and never two at the same time.
On battery below thirty percent nothing starts. A run that is under way when the cable is pulled finishes the
current piece and goes on later from there.

## Leave folders out

List the folders that should never be copied, one per line, in the file exclude.txt beside the settings.
Names may hold a star for any letters. Caches, downloads and the bin are left out without being listed.
What was copied before it was listed stays in the old copies; the next run simply no longer looks at it.
To see what a list would do, choose Preview: it names every folder it leaves out, with its size, and copies
nothing at all.

## Restore a file

Open the calendar, pick a day and drag the file out of it. A restore never overwrites: where a file of that
name exists, the restored one gets a number. Whole folders come back the same way, with their dates.
If you no longer know the day, search for the name; every version is listed, newest first. Restoring from
another machine needs the passphrase once. It is never sent anywhere, and nobody can reset it for you.
""",
    "docs/setup.md": """\
# Setting up

## Install

Run the installer and say where the data should live; any disk with twice the space of your files will do.
The installer needs no administrator. It writes one folder for the program and one for its settings, and
nothing else. Updates arrive by themselves and are verified before they are used. On a server without a
screen, run it with --quiet and give the place as an argument; it leaves with zero when all went well.

## The first run

The first copy takes hours, because everything is new. Later copies take minutes: only what changed is sent.
Leave the machine awake for the first one, or let it be continued in pieces over some days. The menu shows
how much is left. You can use the machine meanwhile; a file that changes during the copy is taken again at
the end. When it is done, a green dot appears, and from then on the dot tells when the last copy was made.
""",
    "src/copy.py": """\
\"\"\"Copying files.\"\"\"

import shutil


def copy_tree(source, target):
    \"\"\"Copy a folder; what is there already stays.\"\"\"
    for path in source.rglob("*"):
        shutil.copy2(path, target / path.relative_to(source))


def restore(day, path):
    \"\"\"Bring one file back from the copy of a day.\"\"\"
    shutil.copy2(day / path, path)
""",
}
