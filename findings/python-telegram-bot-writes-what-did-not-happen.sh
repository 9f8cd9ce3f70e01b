#!/bin/sh
# python-telegram-bot 22.8, `Message.to_dict()`.
#
# The dictionary of a message has `delete_chat_photo`, `group_chat_created`, `supergroup_chat_created` and
# `channel_chat_created` with the value False, also if the JSON from Telegram had none of them; the Bot API sends these
# fields only if they are True. Whoever tells notices from messages by the fields that are there takes the notice that a
# topic was opened for a deleted picture of the group. Other absent fields are left out.
#
# Seen (Linux, Python 3.11):
#   given:    ['chat', 'date', 'forum_topic_created', 'message_id']
#   got back: ['channel_chat_created', 'chat', 'date', 'delete_chat_photo', 'forum_topic_created', 'group_chat_created',
#              'message_id', 'supergroup_chat_created']
#
# Exits with 1 if `to_dict()` gives back the fields that were given.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q python-telegram-bot==22.8
"$folder/venv/bin/python" - <<'PYTHON'
import sys

from telegram import Message

given = {
    "message_id": 3,
    "date": 1780300000,
    "chat": {"id": -1001234, "type": "supergroup", "title": "Tea"},
    "forum_topic_created": {"name": "Green", "icon_color": 7322096},
}
back = Message.de_json(given, None).to_dict()
print("given:   ", sorted(given))
print("got back:", sorted(back))
added = {key: value for key, value in back.items() if key not in given}
sys.exit(0 if added.get("delete_chat_photo") is False else 1)
PYTHON
