"""Collections of StackStorm's database. Each can be imported; its methods name what to use here."""
