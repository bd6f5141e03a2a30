"""Seven wordings of one yes/no question per language, and different questions on the same subject.

The lists were written before the threshold of `survey.questionnaire.similar_texts` was chosen. The
last two wordings of each language share few words with the others: no comparison of letters finds
all of them.
"""

from __future__ import annotations

REWORDINGS = {
    "en": (
        "Have you taken money from your employer without permission?",
        "Did you ever take money from your employer without permission?",
        "Have you, at any time, taken any money from your employer without asking permission?",
        "Is it true that you have taken money from your employer without permission?",
        "Without permission, have you ever taken your employer’s money?",
        "Have you ever stolen money from the company you work for?",
        "Was there an occasion when you pocketed cash at work?",
    ),
    "es": (
        "¿Ha tomado dinero de su empleador sin permiso?",
        "¿Tomó alguna vez dinero de su empleador sin permiso?",
        "¿En algún momento ha tomado dinero de su empleador sin pedir permiso?",
        "¿Es cierto que ha tomado dinero de su empleador sin permiso?",
        "Sin permiso, ¿alguna vez ha tomado el dinero de su empleador?",
        "¿Ha robado alguna vez dinero de la empresa en la que trabaja?",
        "¿Hubo alguna ocasión en que se quedó con efectivo en el trabajo?",
    ),
    "pt": (
        "Você pegou dinheiro do seu empregador sem permissão?",
        "Alguma vez você pegou dinheiro do seu empregador sem permissão?",
        "Em algum momento, você já pegou dinheiro do seu empregador sem pedir permissão?",
        "É verdade que você pegou dinheiro do seu empregador sem permissão?",
        "Sem permissão, você já pegou o dinheiro do seu empregador?",
        "Você já roubou dinheiro da empresa em que trabalha?",
        "Houve alguma ocasião em que você ficou com dinheiro vivo no trabalho?",
    ),
    "ar": (
        "هل أخذت مالًا من صاحب عملك دون إذن؟",
        "هل سبق أن أخذت مالًا من صاحب عملك دون إذن؟",
        "هل أخذت في أي وقت مالًا من صاحب عملك دون أن تطلب الإذن؟",
        "هل صحيح أنك أخذت مالًا من صاحب عملك دون إذن؟",
        "دون إذن، هل أخذت مال صاحب عملك من قبل؟",
        "هل سرقت يومًا مالًا من الشركة التي تعمل فيها؟",
        "هل حدث أن احتفظت لنفسك بنقود في مكان العمل؟",
    ),
}

DIFFERENT = {
    "en": (
        "Have you taken money from your employer without permission?",
        "Have you taken sick leave although you were not ill?",
        "Did you use drugs in the last 12 months?",
        "Were you bullied at work in the last 12 months?",
        "Did you see a doctor in the last 12 months?",
        "Do you know somebody who was hurt at work?",
        "How many hours of unpaid overtime do you work in a usual week?",
        "Does your employer pay you for overtime?",
        "Have you ever lied to your employer about where you were?",
        "Are you satisfied with your pay?",
        "Do you have children under 18?",
        "Did you vote in the last election?",
        "Do you smoke?",
        "How many cigarettes do you smoke a day?",
        "Do you work?",
    ),
    "es": (
        "¿Ha tomado dinero de su empleador sin permiso?",
        "¿Ha pedido una baja médica sin estar enfermo?",
        "¿Consumió drogas en los últimos 12 meses?",
        "¿Le acosaron en el trabajo en los últimos 12 meses?",
        "¿Fue al médico en los últimos 12 meses?",
        "¿Conoce a alguien que se haya lesionado en el trabajo?",
        "¿Cuántas horas extra sin pagar trabaja en una semana normal?",
        "¿Le paga su empleador las horas extra?",
        "¿Alguna vez ha mentido a su empleador sobre dónde estaba?",
        "¿Está satisfecho con su sueldo?",
        "¿Tiene hijos menores de 18 años?",
        "¿Votó en las últimas elecciones?",
    ),
    "pt": (
        "Você pegou dinheiro do seu empregador sem permissão?",
        "Você já tirou licença médica sem estar doente?",
        "Você usou drogas nos últimos 12 meses?",
        "Você sofreu assédio no trabalho nos últimos 12 meses?",
        "Você foi ao médico nos últimos 12 meses?",
        "Você conhece alguém que se machucou no trabalho?",
        "Quantas horas extras não pagas você faz em uma semana normal?",
        "O seu empregador paga as suas horas extras?",
        "Você já mentiu para o seu empregador sobre onde estava?",
        "Você está satisfeito com o seu salário?",
        "Você tem filhos menores de 18 anos?",
        "Você votou na última eleição?",
    ),
    "ar": (
        "هل أخذت مالًا من صاحب عملك دون إذن؟",
        "هل أخذت إجازة مرضية دون أن تكون مريضًا؟",
        "هل تعاطيت المخدرات في آخر 12 شهرًا؟",
        "هل تعرضت للتنمر في العمل في آخر 12 شهرًا؟",
        "هل زرت طبيبًا في آخر 12 شهرًا؟",
        "هل تعرف شخصًا أصيب في العمل؟",
        "كم ساعة إضافية غير مدفوعة تعمل في الأسبوع المعتاد؟",
        "هل يدفع لك صاحب عملك أجر الساعات الإضافية؟",
        "هل سبق أن كذبت على صاحب عملك بشأن مكان وجودك؟",
        "هل أنت راضٍ عن راتبك؟",
        "هل لديك أطفال دون سن 18؟",
        "هل صوّتت في الانتخابات الأخيرة؟",
    ),
}

HELD_OUT_REWORDINGS = {
    "en": (
        "Have you driven a car after drinking alcohol in the last 12 months?",
        "In the past 12 months, did you drive a car after drinking alcohol?",
        "During the last year, have you driven a car after you had been drinking alcohol?",
        "Did you drive after drinking alcohol in the last 12 months?",
        "Have you driven while drunk in the last 12 months?",
        "Have you been behind the wheel after a few drinks?",
        "In the last 12 months, have you ever driven any car after drinking any alcohol?",
    ),
    "es": (
        "¿Ha conducido un coche después de beber alcohol en los últimos 12 meses?",
        "En los últimos 12 meses, ¿condujo un coche después de beber alcohol?",
        "Durante el último año, ¿ha conducido un coche después de haber bebido alcohol?",
        "¿Condujo después de beber alcohol en los últimos 12 meses?",
        "¿Ha conducido borracho en los últimos 12 meses?",
        "¿Se ha puesto al volante después de unas copas?",
        "En los últimos 12 meses, ¿ha conducido alguna vez un coche después de beber alcohol?",
    ),
    "pt": (
        "Você dirigiu um carro depois de beber álcool nos últimos 12 meses?",
        "Nos últimos 12 meses, você dirigiu um carro depois de beber álcool?",
        "Durante o último ano, você dirigiu um carro depois de ter bebido álcool?",
        "Você dirigiu depois de beber álcool nos últimos 12 meses?",
        "Você dirigiu bêbado nos últimos 12 meses?",
        "Você pegou no volante depois de tomar umas e outras?",
        "Nos últimos 12 meses, você já dirigiu algum carro depois de beber álcool?",
    ),
    "ar": (
        "هل قدت سيارة بعد شرب الكحول في آخر 12 شهرًا؟",
        "في آخر 12 شهرًا، هل قدت سيارة بعد شرب الكحول؟",
        "خلال السنة الماضية، هل قدت سيارة بعد أن شربت الكحول؟",
        "هل قدت بعد شرب الكحول في آخر 12 شهرًا؟",
        "هل قدت وأنت سكران في آخر 12 شهرًا؟",
        "هل جلست خلف المقود بعد بضع كؤوس؟",
        "في آخر 12 شهرًا، هل حدث أن قدت أي سيارة بعد شرب الكحول؟",
    ),
}
"""Written after the threshold, and never used to change it."""

HELD_OUT_DIFFERENT = {
    "en": (
        "Have you driven a car after drinking alcohol in the last 12 months?",
        "Have you driven a car without a licence in the last 12 months?",
        "Were you fined for speeding in the last 12 months?",
        "How often do you drink alcohol?",
        "Do you own a car?",
        "Have you smoked cannabis in the last 12 months?",
        "Have you been to a doctor because of your drinking?",
        "Did you cheat in an exam this term?",
        "Have you copied an essay from the internet?",
        "Do you live with your parents?",
    ),
    "es": (
        "¿Ha conducido un coche después de beber alcohol en los últimos 12 meses?",
        "¿Ha conducido un coche sin permiso de conducir en los últimos 12 meses?",
        "¿Le multaron por exceso de velocidad en los últimos 12 meses?",
        "¿Con qué frecuencia bebe alcohol?",
        "¿Tiene coche propio?",
        "¿Ha fumado cannabis en los últimos 12 meses?",
        "¿Ha ido al médico por su consumo de alcohol?",
        "¿Copió en un examen este trimestre?",
        "¿Ha copiado un trabajo de internet?",
        "¿Vive con sus padres?",
    ),
    "pt": (
        "Você dirigiu um carro depois de beber álcool nos últimos 12 meses?",
        "Você dirigiu um carro sem carteira de motorista nos últimos 12 meses?",
        "Você foi multado por excesso de velocidade nos últimos 12 meses?",
        "Com que frequência você bebe álcool?",
        "Você tem carro próprio?",
        "Você fumou maconha nos últimos 12 meses?",
        "Você foi ao médico por causa da bebida?",
        "Você colou em uma prova neste semestre?",
        "Você copiou um trabalho da internet?",
        "Você mora com os seus pais?",
    ),
    "ar": (
        "هل قدت سيارة بعد شرب الكحول في آخر 12 شهرًا؟",
        "هل قدت سيارة دون رخصة قيادة في آخر 12 شهرًا؟",
        "هل دفعت غرامة بسبب السرعة في آخر 12 شهرًا؟",
        "كم مرة تشرب الكحول؟",
        "هل تملك سيارة؟",
        "هل دخنت الحشيش في آخر 12 شهرًا؟",
        "هل زرت طبيبًا بسبب شرب الكحول؟",
        "هل غششت في امتحان هذا الفصل؟",
        "هل نسخت بحثًا من الإنترنت؟",
        "هل تعيش مع والديك؟",
    ),
}

SATISFACTION = {
    "en": "How satisfied are you with {}?",
    "es": "¿Qué tan satisfecho está con {}?",
    "pt": "Qual é o seu grau de satisfação com {}?",
    "ar": "ما مدى رضاك عن {}؟",
}
SATISFACTION_ITEMS = {
    "en": ("your pay", "your working hours", "your boss", "your colleagues", "your training",
           "your workplace", "the security of your job", "your workload"),
    "es": ("su sueldo", "su horario", "su jefe", "sus compañeros", "su formación",
           "su lugar de trabajo", "la seguridad de su empleo", "su carga de trabajo"),
    "pt": ("o seu salário", "o seu horário", "o seu chefe", "os seus colegas", "a sua formação",
           "o seu local de trabalho", "a segurança do seu emprego", "a sua carga de trabalho"),
    "ar": ("راتبك", "ساعات عملك", "مديرك", "زملائك", "تدريبك",
           "مكان عملك", "أمان وظيفتك", "عبء عملك"),
}  # fmt: skip
FREQUENCY = {
    "en": "In the last 12 months, how often were you {} at work?",
    "es": "En los últimos 12 meses, ¿con qué frecuencia le {} en el trabajo?",
    "pt": "Nos últimos 12 meses, com que frequência você foi {} no trabalho?",
    "ar": "في آخر 12 شهرًا، كم مرة تعرضت {} في العمل؟",
}
FREQUENCY_ITEMS = {
    "en": ("insulted", "threatened", "hit", "bullied", "ignored", "touched against your will"),
    "es": ("insultaron", "amenazaron", "golpearon", "acosaron", "ignoraron", "tocaron sin permiso"),
    "pt": ("insultado", "ameaçado", "agredido", "assediado", "ignorado", "tocado sem permissão"),
    "ar": ("للإهانة", "للتهديد", "للضرب", "للتنمر", "للتجاهل", "للمس رغمًا عنك"),
}

BATTERIES = {
    f"{name}, {language}": tuple(stems[language].format(item) for item in items[language])
    for name, stems, items in (
        ("satisfaction", SATISFACTION, SATISFACTION_ITEMS),
        ("frequency", FREQUENCY, FREQUENCY_ITEMS),
    )
    for language in stems
}
"""Items that share most words but ask about different things.

They were not used to choose the threshold.
"""
